"""Reports that no answers can give are a reason against the model; sound reports hardly ever are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.cells import cells_of
from inference.analyses.noise_bounds import FEWEST, impossible
from inference.analyses.table import Private, table_of
from tests.inference.analyses.simulated import forced
from tests.kit.channels import known_channel


def dice(random: np.random.Generator, share: float, n: int, kinds: int) -> Private:
    """Answers behind noise, of which `share` are of each kind but the first."""
    matrix = np.full((kinds, kinds), 0.4 / kinds) + 0.6 * np.eye(kinds)
    answers = np.where(random.random(n) < share * (kinds - 1), random.integers(1, kinds, n), 0)
    said = np.asarray([random.choice(kinds, p=matrix[answer]) for answer in answers])
    return known_channel(f"q{kinds}", [str(kind) for kind in range(kinds)], said, matrix)


@pytest.mark.attack(18)
@pytest.mark.parametrize("kinds", [2, 4])
def test_impossible_reports_are_detected(kinds):
    """People do not follow the dice in the north; shares at the limit of what is possible are sound."""
    random, n = np.random.default_rng(kinds), 400
    place = np.where(np.arange(n) % 2, "north", "south")
    sound = dice(random, 0.0, n, kinds)
    cheated = replace(sound, codes=np.where(place == "north", 0, sound.codes))
    for column, bad in ((sound, False), (cheated, True)):
        whole = table_of(pd.DataFrame({"place": place}), [column])
        said = impossible([column], cells_of(whole, ["place"], [column.name]))
        assert bool(said) == bad
        assert not bad or "where place = north" in said[0].text


def test_sound_reports_are_rarely_called_impossible():
    """At the hull's corners, where all people gave the same answer."""
    random = np.random.default_rng(7)
    for share in (0.0, 0.2, 1.0 / 3) * 8:
        column = dice(random, share, 60, 3)
        whole = table_of(pd.DataFrame(index=range(60)), [column])
        assert not impossible([column], cells_of(whole, [], ["q3"]))


@pytest.mark.parametrize(
    ("codes", "bad"), [([0], False), ([1] * 6, False), ([0] * (FEWEST - 1), False), ([1] * 100, True)]
)
def test_a_few_reports_are_never_called_impossible(codes, bad):
    analysis = assemble(forced({"age": np.arange(len(codes))}, codes), "armed ~ 1")
    assert bool(impossible(analysis.privates, analysis.cells)) == bad
