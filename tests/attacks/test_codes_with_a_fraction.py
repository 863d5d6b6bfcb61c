"""Houses are named by village and house, 1.1 to 1.30: as numbers, 1.1 and 1.10 are one cluster or level.

Defence: `fit` and `plan`: refuse the column if it serves as levels, in tables, waves, censuses and tables
of people.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.census import in_kind_of
from inference.analyses.design_file import read_design
from inference.analyses.population import Population, people_of
from inference.analyses.survey import codes_of, load_survey, load_waves, read_frame
from inference.analyses.table import Table
from inference.design.people import as_the_study_says, people_of_table
from inference.design.possible_reports import possible_of_design
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.kit.errors import raises

LABELS = {"answers": ["no", "yes"], "reports": ["no", "yes"]}
MATRIX = [["5/6", "1/6"], ["1/6", "5/6"]]
DESIGN = {"format": "ldpkit.design/1", "columns": {"armed": {**LABELS, "matrix": MATRIX}}}
HOUSES = [f"{village}.{house}" for village in (1, 2) for house in range(1, 31)]
TWO_CODES = ("table.two_codes_one_number", "column house", "1.1 and 1.10", "(c1.1)")
ROLES: dict[str, tuple[str, Population]] = {
    "(…|x)": ("armed ~ 1 + (1 | house)", Population()),
    "C(x)": ("armed ~ C(house)", Population()),
    "--by": ("armed ~ house", Population(by="house")),
}


def write(folder: Path, houses: list[str], design: object = None, name: str = "t.csv") -> str:
    rows = [f"{('no', 'yes')[place % 2]},{one},{place % 7}.50" for one in houses for place in range(4)]
    (folder / name).write_text("\n".join(["armed,house,income", *rows]))
    (folder / "design.json").write_text(json.dumps(design or DESIGN))
    return str(folder / name)


def load(folder: Path, houses: list[str], formula: str = "armed ~ house + income") -> Table:
    return load_survey(write(folder, houses), str(folder / "design.json"), formula)[0]


@pytest.mark.parametrize("role", ROLES)
def test_codes_that_equal_the_same_number_are_rejected_as_levels(role: str, tmp_path: Path) -> None:
    table, (formula, over) = load(tmp_path, HOUSES), ROLES[role]
    with raises(InputError, TWO_CODES):
        over.checked(table) and assemble(table, formula)


def test_numbers_stay_predictors_and_padded_codes_stay_levels(tmp_path: Path) -> None:
    assemble(load(tmp_path, HOUSES), "armed ~ house + income + I(income**2)")
    padded = load(tmp_path, [f"1.{house:02}" for house in range(1, 31)])
    assert len(assemble(padded, "armed ~ 1 + (1 | house)").groups[0].levels) == 30


def test_design_rows_with_ambiguous_codes_are_rejected(tmp_path: Path) -> None:
    parts = [{"rows": {"house": one}, "matrix": MATRIX} for one in ("1.1", "2.5")]
    design = {**DESIGN, "columns": {"armed": {**LABELS, "matrices": parts}}}
    path = write(tmp_path, ["1.1", "1.10", "2.5"], design)
    with raises(InputError, TWO_CODES):
        load_survey(path, str(tmp_path / "design.json"), "armed ~ 1")
    with raises(InputError, TWO_CODES):
        possible_of_design(read_design(json.dumps(design).encode()), "armed ~ 1", read_frame(path))


def test_ambiguous_codes_across_two_waves_are_rejected(tmp_path: Path) -> None:
    """One wave has 1.1 and the other 1.10."""
    waves = {name: write(tmp_path, houses, name=f"{name}.csv") for name, houses in
             (("a", ["1.1", "1.2"]), ("b", ["1.10", "1.2", "1.2"]))}  # fmt: skip
    table, _ = load_waves(waves, str(tmp_path / "design.json"), "armed ~ house", "error", ())
    with raises(InputError, TWO_CODES):
        assemble(table, "armed ~ 1 + (1 | house)")


def test_census_with_ambiguous_codes_is_rejected(tmp_path: Path) -> None:
    table = load(tmp_path, ["h1.1", "h1.10", "h1.2"])
    table.public["house"] = pd.Categorical(table.public["house"].str[1:], categories=["1.1", "1.10", "1.2"])
    analysis = assemble(table, "armed ~ house")
    (tmp_path / "census.csv").write_text("house,count\n1.1,5\n1.10,7\n1.2,8\n")
    with raises(InputError, TWO_CODES, "the census: column house"):
        people_of(analysis, table, Population(census=read_frame(str(tmp_path / "census.csv"))))
    one = pd.Series([1.1, 1.2])
    with raises(InputError, "table.number_of_several_labels", "the census: house", "1.1 and 1.10"):
        in_kind_of(one, table.public["house"], "house")
    padded = pd.Series(pd.Categorical(["0.10", "0.25"]))
    assert list(in_kind_of(pd.Series([0.1, 0.25]), padded, "house")) == ["0.10", "0.25"]


def test_table_of_people_with_ambiguous_codes_is_rejected_by_plan(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("release,count\n1.1,5\n1.10,7\n")
    field = {"id": "release", "choices": ["1.1", "1.10"]}
    study = Study(studies.document(studies.YES_NO, public=[field]))
    known = read_frame(str(tmp_path / "people.csv"))
    with raises(
        InputError, "table.two_codes_one_number", "the table of people: column release", "1.1 and 1.10"
    ):
        as_the_study_says(people_of_table(known, ["release"]), study.public)
    known = pd.DataFrame({"release": [1.1]})
    with raises(InputError, "table.number_of_several_labels", "1.1 and 1.10"):
        as_the_study_says(people_of_table(known, ["release"]), study.public)


def test_ambiguous_number_among_reports_is_rejected() -> None:
    with raises(InputError, "dice.number_is_several_reports", "1.1"):
        codes_of(pd.Series([1.1, 2.0]), ["1.1", "1.10", "2"], "armed")
    assert np.array_equal(codes_of(pd.Series([1.1, 2.0]), ["1.10", "2"], "armed"), [0, 1])
