"""Hide one wave's small census behind the others'."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from inference.analyses.joining import joined
from inference.analyses.table import Table, known_channel, table_of
from tests.attacks.test_slips_in_a_census import census_of, said
from tests.inference.analyses.simulated import YES_NO


def asked() -> Table:
    """450 reports of each of two waves, of two regions each."""
    frame = pd.DataFrame({"region": np.tile(["north", "south"], 225)})
    waves = {}
    for place, name in enumerate(("2024", "2025")):
        reports = np.random.default_rng(place).integers(0, 2, len(frame))
        waves[name] = table_of(frame.copy(), [known_channel("armed", ("no", "yes"), reports, YES_NO)])
    return joined(waves, "wave")


HEADER = "wave,region,count\n"
PEOPLE = "2024,north,90000\n2024,south,80000\n"


def test_a_census_of_one_wave_in_other_units_is_noted(tmp_path: Path) -> None:
    census = census_of(tmp_path, PEOPLE + "2025,north,91\n2025,south,82\n", HEADER)
    _, (fewer,) = said(asked(), "armed ~ wave + region", census)
    assert fewer.startswith("the census counts 173 people of wave 2025, fewer than the 450 that reports came")
    whole = census_of(tmp_path, PEOPLE + "2025,north,91000\n2025,south,82000\n", HEADER)
    assert said(asked(), "armed ~ wave + region", whole) == ((), ())


def test_a_region_of_which_the_census_counts_too_few_is_noted(tmp_path: Path) -> None:
    census = census_of(tmp_path, "north,90000\nsouth,80\n", "region,count\n")
    _, (note,) = said(asked(), "armed ~ region", census)
    assert note.startswith("the census counts 80 people of region south, fewer than the 450 that")
