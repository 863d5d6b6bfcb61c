"""Clinics have ids of seventeen digits, or with leading zeros: read as numbers, two of them are equal.

Defence: `ldpkit fit`, `ldpkit plan`: long numbers in a CSV stay text, which is noted; in Parquet they are
refused by name, as are codes that differ only in zeros.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.census import in_kind_of
from inference.analyses.design_file import read_design
from inference.analyses.population import Population, notes_over, people_of
from inference.analyses.survey import load_survey, read_frame, survey_of, typed
from inference.analyses.table import Table
from ldp_client.documents.errors import InputError
from tests.kit.errors import raises

LABELS = {"answers": ["no", "yes"], "reports": ["no", "yes"]}
MATRIX = {"matrix": [["5/6", "1/6"], ["1/6", "5/6"]]}


def design_of(**armed: object) -> str:
    return json.dumps({"format": "ldpkit.design/1", "columns": {"armed": {**LABELS, **armed}}})


DESIGN = design_of(**MATRIX)
MANY = 32
IDS = [12345678901230001 + place for place in range(MANY)]
AS_TEXT = f"clinic holds numbers as text: each of its {MANY} values is taken as a level"


def read(
    folder: Path, ids: list[object], design: str = DESIGN, also: Sequence[str] = ("clinic", "w")
) -> Table:
    """Thirty reports of each of the ids, as a CSV."""
    rows = [f"{('no', 'yes')[row % 2]},{one},2,r{row}" for one in ids for row in range(30)]
    (folder / "t.csv").write_text("\n".join(["armed,clinic,w,record", *rows]))
    (folder / "design.json").write_text(design)
    return load_survey(str(folder / "t.csv"), str(folder / "design.json"), "armed ~ 1", also=also)[0]


def test_long_ids_in_a_csv_are_kept_as_text(tmp_path: Path) -> None:
    table = read(tmp_path, list(IDS))
    (group,) = assemble(table, "armed ~ 1 + (1 | clinic)").groups
    assert group.levels == tuple(map(str, IDS))
    assert [note.split(";")[0] for note in table.notes] == [AS_TEXT]


def test_long_ids_in_a_census_are_kept_apart(tmp_path: Path) -> None:
    table = read(tmp_path, list(IDS))
    analysis = assemble(table, "armed ~ 1 + (1 | clinic)")
    rows = "\n".join(["clinic,count", *(f"{one},{100 + place}" for place, one in enumerate(IDS))])
    (tmp_path / "census.csv").write_text(rows)
    over = Population(census=read_frame(str(tmp_path / "census.csv")))
    frame, counts = people_of(analysis, table, over)
    assert frame["clinic"].nunique() == MANY
    assert not any("without reports" in note for note in notes_over(analysis, (frame, counts), over))


LONG = {
    "int64": np.asarray(IDS, np.int64),
    "uint64": np.asarray(IDS, np.uint64),
    "Int64": pd.array(IDS, dtype="Int64"),
    "float64, as of a column with blanks": np.asarray(IDS, np.float64),
    "exact decimals": [Decimal(one) for one in IDS],
}


@pytest.mark.parametrize("values", LONG.values(), ids=list(LONG))
def test_long_numbers_in_other_files_are_refused(values: object) -> None:
    frame = pd.DataFrame({"armed": ["no", "yes"] * 16, "clinic": values, "count": 1})
    design = read_design(DESIGN.encode())
    with raises(InputError, "table.columns_invalid", "column clinic", "(c12345678901") as refused:
        survey_of(frame, design)
    assert str(refused.value).startswith("column clinic")
    assert survey_of(frame, design, ["armed"]).n == MANY
    table = survey_of(frame.assign(clinic=np.arange(MANY)), design)
    analysis = assemble(table, "armed ~ 1 + (1 | clinic)")
    with raises(InputError, "table.columns_invalid", "the census: column clinic", "(c12345678901"):
        people_of(analysis, table, Population(census=frame))


def test_largest_exact_float_is_read_as_a_number() -> None:
    assert typed([str(2**53 - 1), "1"]).dtype == np.float64
    assert typed([str(2**53), "1"]).dtype == object
    assert typed(["0.12345678901234567", "1e300", "-7", "+8", "0", "-0", "009"]).dtype == np.float64


@pytest.mark.parametrize("codes", [["007", "7", "12"], ["0", "00", "1"]])
def test_codes_that_differ_only_in_zeros_are_refused(codes: list[str], tmp_path: Path) -> None:
    two_spellings = ("table.columns_invalid", "column clinic", f"{codes[0]} and {codes[1]}")
    with raises(InputError, two_spellings):
        read(tmp_path, list(codes))
    frame = pd.DataFrame({"armed": ["no", "yes", "no"], "clinic": codes})
    with raises(InputError, two_spellings):
        survey_of(frame, read_design(DESIGN.encode()))
    assert read(tmp_path, list(codes), also=()).n == 90


def test_design_by_rows_keeps_all_digits_of_ids(tmp_path: Path) -> None:
    design = design_of(matrices=[{"rows": {"clinic": one}, **MATRIX} for one in IDS])
    codes = read(tmp_path, list(IDS), design, also=()).private["armed"].codes
    assert len(np.unique(codes)) == 2 * MANY


def test_census_in_csv_matches_choices_with_leading_zeros() -> None:
    asked = pd.Series(pd.Categorical(["01", "02", "11"], categories=["01", "02", "11"]))
    assert list(in_kind_of(typed(["01", "11"]), asked, "land")) == ["01", "11"]
    with raises(InputError, "census.unknown_value", "3"):
        in_kind_of(typed(["01", "03"]), asked, "land")
    both = pd.Series(pd.Categorical(["01", "1"], categories=["01", "1"]))
    assert list(in_kind_of(typed(["1"]), both, "land")) == ["1"]


@pytest.mark.parametrize(
    "cells", [["1.5", "07", "7"], ["-07", "07", "12"], ["1e-05", "07", "7"], ["12345678901230001", "0.5"]]
)
def test_column_of_measurements_stays_numeric(cells: list[str]) -> None:
    """A fraction or a sign shows that these values are not codes."""
    assert typed(cells).tolist() == list(map(float, cells))


@pytest.mark.parametrize("codes", [["007", "7", "x"], ["x", "7", "007"]])
def test_column_mixing_numbers_and_words_is_refused(codes: list[str], tmp_path: Path) -> None:
    with raises(InputError, "table.numbers_and_words", "clinic"):
        assemble(read(tmp_path, list(codes)), "armed ~ 1 + (1 | clinic)")
