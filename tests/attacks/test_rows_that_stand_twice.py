"""Gives nearly one table, or a download with all former rows, as two waves; a file below itself as one."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from inference.analyses.same_rows import twins
from inference.analyses.survey import load_survey, load_waves
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises

DESIGN = {
    "format": "ldpkit.design/1",
    "columns": {
        "armed": {
            "answers": ["no", "yes"],
            "reports": ["no", "yes"],
            "matrix": [["5/6", "1/6"], ["1/6", "5/6"]],
        }
    },
}


def people(seed: int, first: int = 1, n: int = 600, ages: int = 63, income: bool = True) -> pd.DataFrame:
    """Records numbered from `first`; 0 for none."""
    random = np.random.default_rng(seed)
    known = {"person": first + np.arange(n)} if first else {}
    known |= {"armed": random.choice(["yes", "no"], n), "age": 18 + random.integers(0, ages, n)}
    return pd.DataFrame(known | ({"income": random.lognormal(10, 0.5, n).round(2)} if income else {}))


def load(folder, *frames: pd.DataFrame):
    (folder / "design.json").write_text(json.dumps(DESIGN))
    paths = {}
    for place, frame in enumerate(frames):
        paths[f"w{place}"] = str(folder / f"{place}.csv")
        frame.to_csv(folder / f"{place}.csv", index=False)
    design = str(folder / "design.json")
    if len(frames) == 1:
        return load_survey(paths["w0"], design, "armed ~ age")[0]
    return load_waves(paths, design, "armed ~ wave", "refuse", ())[0]


ONE = people(1)
BARE, COARSE = ONE.drop(columns="person"), people(1, income=False)
SAME = {
    "one row less": (ONE, ONE[:-1]),
    "another name": (ONE, ONE.rename(columns={"income": "pay"})),
    "cumulative": (COARSE, pd.concat([COARSE, people(2, 5001, income=False)])),
    "without numbers": (BARE, pd.concat([people(3, 0), BARE.sample(frac=1, random_state=1)])),
    "numbered anew": (ONE, ONE[1:].assign(person=range(9001, 9600))),
}


@pytest.mark.parametrize("which", SAME)
def test_rows_of_one_wave_in_another_are_refused(which, tmp_path):
    with raises(InputError, "wave.shared_rows", "waves w0 and w1"):
        load(tmp_path, *SAME[which])


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("ages", [2, 63])
@pytest.mark.parametrize("income", [True, False])
def test_waves_of_different_people_are_not(first, ages, income, tmp_path):
    """Few coarse columns, the same numbers of records, and rows sorted before they were numbered."""
    waves = [people(seed, first, n, ages, income).sort_values(["age"]) for seed, n in ((4, 600), (5, 700))]
    if first:
        waves = [one.assign(person=range(len(one))) for one in waves]
    assert load(tmp_path, *waves).n == 1300


def villages(seed: int) -> pd.DataFrame:
    """Ten households of each of sixty villages, numbered within them, in two regions."""
    frame = people(seed, 0, income=False)
    frame["age"] //= 40
    place = np.arange(600)
    return frame.assign(region=place // 300, village=place // 10 % 30, household=1 + place % 10)


@pytest.mark.parametrize("at", [0, 2])
def test_waves_that_number_households_within_villages_alike_are_different_people(at, tmp_path):
    """Three columns together name a household, and another one has the same numbers in the next wave."""
    ordered = [*villages(1).columns[at:], *villages(1).columns[:at]]
    waves = [villages(seed)[ordered] for seed in (1, 2)]
    assert load(tmp_path, *waves).n == 1200
    with raises(InputError, "wave.shared_rows"):
        load(tmp_path, waves[0], waves[0][5:].sample(frac=1, random_state=1))


@pytest.mark.parametrize("beside", ["one value", "follows"])
@pytest.mark.parametrize("ordered", [False, True])
def test_what_tells_rows_apart_is_no_number_where_all_else_is_alike_anyhow(beside, ordered):
    """Age and income, beside a column that could not tell whether these are other people."""
    plain = people(1).round({"income": -1}).sort_values(["age", "income"])[["age", "income"]]
    plain = plain.drop_duplicates()
    assert not plain["income"].is_unique
    one = plain.assign(other="here" if beside == "one value" else plain["age"] // 20)
    less = one[5:] if ordered else one[5:].sample(frac=1, random_state=1)
    with raises(InputError, "wave.shared_rows"):
        list(twins(("w0", one), ("w1", less)))


def test_a_file_below_itself_is_refused_and_many_double_rows_are_noted(tmp_path):
    with raises(InputError, "table.rows_repeated", "2"):
        load(tmp_path, pd.concat([ONE, ONE]))
    assert any("stand twice" in note for note in load(tmp_path, pd.concat([ONE, ONE[:-3]])).notes)
    assert not any("stand twice" in note for note in load(tmp_path, people(6, 0, 600, 3, False)).notes)
