"""Hide one wave's replicate weights of another type, scaled weights or small census behind the others'."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses.joining import joined
from inference.analyses.population import Population
from inference.analyses.table import Table, known_channel, table_of
from inference.analyses.weights import ReplicateWeights
from ldp_client.documents.errors import InputError
from tests.attacks.test_slips_in_a_census import census_of, said
from tests.inference.analyses.simulated import YES_NO
from tests.kit.errors import raises

R = 40


def replicates(kind: str, n: int, random: np.random.Generator) -> np.ndarray:
    """Factors (n, R) of weights: how often each row is drawn anew, or all but one group of it."""
    if kind == "bootstrap":
        return random.multinomial(n, np.full(n, 1 / n), size=R).T
    group = random.permutation(n) % R
    return np.where(group[:, None] == np.arange(R), 0, R / (R - 1))


def wave(n: int, seed: int, kind: str = "bootstrap", mean: float = 1000.0, spread: float = 0.6) -> Table:
    random = np.random.default_rng(seed)
    w = random.lognormal(0, spread, n)
    w *= mean / w.mean()
    factors = replicates(kind, n, random)
    columns = {f"rep{one + 1}": w * factors[:, one] for one in range(R)}
    columns |= {f"factor{one + 1}": factors[:, one].astype(float) for one in range(R)}
    frame = pd.DataFrame({"w": w, **columns})
    reports = random.integers(0, 2, n)
    return table_of(frame, [known_channel("q", ("no", "yes"), reports, YES_NO)])


def together(**waves: Table) -> Table:
    return replace(joined(waves, "wave"), waves="wave")


def over(kind: str, columns: str = "rep", weights: str = "w") -> Population:
    return Population(weights=weights, replicates=ReplicateWeights(columns, kind))


@pytest.mark.parametrize("of_one", [600, 60])
def test_replicates_of_another_type_in_one_wave_are_refused(of_one: int) -> None:
    """As bootstraps the jackknife's squares are 40 times too small: the interval of that wave six times."""
    mixed = together(a=wave(1500, 1), b=wave(of_one, 2, "jk1"))
    with raises(InputError, "weights.replicate_spread_differs", "where wave = b", "bootstrap"):
        over("bootstrap").checked(mixed)
    for kind in ("bootstrap", "jk1"):
        same = together(a=wave(1500, 1, kind), b=wave(of_one, 2, kind))
        assert over(kind).checked(same).sampled(same).replicates is not None


def test_replicates_that_weigh_nobody_of_one_wave_are_refused() -> None:
    one = wave(600, 2)
    one.public["rep7"] = 0.0
    with raises(InputError, "weights.replicate_all_zero", "where wave = b, rep7"):
        over("bootstrap").checked(together(a=wave(1500, 1), b=one))


@pytest.mark.slow
def test_factors_of_weights_of_mean_one_are_refused() -> None:
    """Their sums are those of whole weights, and so are their squares, all but."""
    for seed in range(20):
        table = wave(400, seed, mean=1.0)
        assert over("bootstrap").checked(table)
        with raises(InputError, "weights.replicate_average_differs", "multiply"):
            over("bootstrap", "factor").checked(table)
    with raises(InputError, "weights.replicate_average_differs", "where wave = b"):
        over("bootstrap", "factor").checked(
            together(a=wave(400, 1, mean=1.0, spread=0), b=wave(400, 2, mean=1.0))
        )


@pytest.mark.slow
@pytest.mark.parametrize("units", [3, 8, 200])
@pytest.mark.parametrize("kind", ["bootstrap", "jk1"])
def test_whole_weights_of_few_clusters_are_not_taken_for_factors(units: int, kind: str) -> None:
    """Rows of a cluster move together, and so is their mean away from their weight together."""
    refused = []
    for seed in range(30):
        random = np.random.default_rng(seed)
        w = np.repeat(random.lognormal(0, 1, units), 10)
        jackknife = (1 - np.eye(units)) * units / (units - 1)
        own = replicates("bootstrap", units, random) if kind == "bootstrap" else jackknife
        whole = w[:, None] * np.repeat(own, 10, axis=0)
        frame = pd.DataFrame({"w": w, **{f"rep{one + 1}": column for one, column in enumerate(whole.T)}})
        reports = known_channel("q", ("no", "yes"), np.arange(len(w)) % 2, YES_NO)
        refused.append(why_not(table_of(frame, [reports]), kind))
    assert not any("row by row" in one for one in refused)


def why_not(table: Table, kind: str) -> str:
    """Why these replicate weights are refused, "" where they are not."""
    try:
        over(kind).checked(table)
    except InputError as error:
        return str(error)
    return ""


def notes(table: Table) -> list[str]:
    return [one.split(":")[0] for one in Population(weights="w").notes(table)]


def test_weights_that_were_normalised_in_one_wave_are_noted() -> None:
    found = notes(together(a=wave(1500, 1), b=wave(1500, 2, mean=1.0)))
    assert "where wave = b, w is 1 on average, as weights that were normalised" in found
    assert "w adds up to 1.5e+06 where wave = a, and to 1,500 where wave = b" in found
    assert not any("wave = a, w" in one for one in found)
    (note,) = notes(together(a=wave(1500, 1, mean=1.0), b=wave(900, 2, mean=1.0)))
    assert note == "w is 1 on average, as weights that were normalised"
    assert notes(together(a=wave(1500, 1), b=wave(400, 2, mean=1300.0))) == []


def test_few_reports_that_carry_one_waves_weight_are_noted() -> None:
    one = wave(500, 2)
    one.public.loc[:3, "w"] = 200_000.0
    found = notes(together(a=wave(8000, 1), b=one))
    assert "where wave = b, few reports carry much of the weight" in found
    assert not any(note.startswith("where wave = a") for note in found)


def asked() -> Table:
    """450 reports of each of two waves, of two regions each."""
    frame = pd.DataFrame({"region": np.tile(["north", "south"], 225)})
    waves = {}
    for place, name in enumerate(("2024", "2025")):
        reports = np.random.default_rng(place).integers(0, 2, len(frame))
        waves[name] = table_of(frame.copy(), [known_channel("armed", ("no", "yes"), reports, YES_NO)])
    return together(**waves)


HEADER = "wave,region,count\n"
PEOPLE = "2024,north,90000\n2024,south,80000\n"


def test_a_census_of_one_wave_in_other_units_is_noted(tmp_path: Path) -> None:
    census = census_of(tmp_path, PEOPLE + "2025,north,91\n2025,south,82\n", HEADER)
    _, found = said(asked(), "armed ~ wave + region", census)
    fewer, unlike = found
    assert fewer.startswith("the census counts 173 people of wave 2025, fewer than the 450 that reports came")
    assert unlike.startswith("the census adds up to 170,000 where wave = 2024, and to 173 where wave = 2025:")
    whole = census_of(tmp_path, PEOPLE + "2025,north,91000\n2025,south,82000\n", HEADER)
    assert said(asked(), "armed ~ wave + region", whole) == ((), ())


def test_a_region_of_which_the_census_counts_too_few_is_noted(tmp_path: Path) -> None:
    census = census_of(tmp_path, "north,90000\nsouth,80\n", "region,count\n")
    _, (note,) = said(asked(), "armed ~ region", census)
    assert note.startswith("the census counts 80 people of region south, fewer than the 450 that")
