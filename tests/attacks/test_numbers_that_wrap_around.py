"""Give ages as bytes, incomes as 32 bits, or dates: their squares would wrap around without a message.

Defence: `ldpkit fit`, `ldpkit plan`: take every number of a table, its weights and a census as float64.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.design_file import read_design
from inference.analyses.population import Population, people_of
from inference.analyses.survey import load_survey, survey_of
from inference.analyses.table import Table
from inference.design.people import as_the_study_says, people_of_table
from inference.design.possible_reports import possible_of_design
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.kit.errors import raises

FORCED = [[5 / 6, 1 / 6], [1 / 6, 5 / 6]]
TEXT = (
    b'{"format": "ldpkit.design/1", "columns": {"armed": {"design": "forced", "yes": "1/6", "no": "1/6", '
    b'"reports": ["no", "yes"]}}}'
)
DESIGN = read_design(TEXT)
AGES = np.arange(20, 100)
FRAME = pd.DataFrame(
    {"armed": ["no", "yes"] * 40, "age": AGES, "kids": AGES % 7, "year": 1995 + AGES % 11, "count": 1}
)
FORMULAS = (
    "armed ~ I(age**2)",
    "armed ~ age*kids",
    "armed ~ I(year - 2000)",
    "armed ~ 1 + (I(age*kids) | year)",
)
KINDS = (
    "uint8",
    "int16",
    "uint16",
    "int32",
    "float16",
    "float32",
    "Int16",
    "int64[pyarrow]",
    "uint8[pyarrow]",
)


def as_kind(kind: str) -> pd.DataFrame:
    wide = {"uint8": "uint16", "uint8[pyarrow]": "uint16[pyarrow]"}.get(kind, kind)
    return FRAME.astype({"age": kind, "kids": kind, "count": kind, "year": wide})


def columns(table: Table, formula: str) -> np.ndarray:
    analysis = assemble(table, formula)
    varying = [group.matrix.values for group in analysis.groups]
    return np.concatenate([analysis.law.matrix.values, *varying], axis=2)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("kind", KINDS)
def test_formula_of_small_integers_does_not_wrap_around(formula: str, kind: str) -> None:
    wide, small = (survey_of(frame, DESIGN) for frame in (FRAME.astype({"age": float}), as_kind(kind)))
    assert np.array_equal(columns(small, formula), columns(wide, formula))
    assert all("1995" in group.levels for group in assemble(small, formula).groups)


def test_parquet_file_gives_same_columns_as_csv(tmp_path: Path) -> None:
    table, written, design = tmp_path / "t.parquet", tmp_path / "t.csv", tmp_path / "design.json"
    as_kind("uint8").to_parquet(table)
    FRAME.to_csv(written, index=False)
    design.write_bytes(TEXT)
    for formula in FORMULAS:
        small, text = (load_survey(str(path), str(design), formula)[0] for path in (table, written))
        assert np.array_equal(columns(small, formula), columns(text, formula))


@pytest.mark.parametrize("kind", KINDS)
def test_census_of_small_integers_is_read_as_float64(kind: str) -> None:
    table = survey_of(FRAME, DESIGN)
    analysis = assemble(table, "armed ~ I(age**2)")
    census = as_kind(kind)[["age", "count"]]
    frame, counts = people_of(analysis, table, Population(census=census))
    assert frame["age"].dtype == np.float64
    assert list(frame["age"]) == list(AGES)
    assert counts.sum() == 80


def test_census_in_pyarrow_table_is_accepted() -> None:
    table = survey_of(FRAME, DESIGN)
    analysis = assemble(table, "armed ~ I(age**2)")
    census = pyarrow.Table.from_pandas(as_kind("uint8")[["age", "count"]])
    assert list(people_of(analysis, table, Population(census=census))[0]["age"]) == list(AGES)
    with raises(InputError, "census.not_frame"):
        people_of(analysis, table, Population(census="census.csv"))


@pytest.mark.parametrize("kind", KINDS)
def test_plan_table_of_small_integers_does_not_wrap_around(kind: str) -> None:
    small, wide = (
        possible_of_design(DESIGN, "armed ~ I(age**2)", frame.drop(columns="armed")).table
        for frame in (as_kind(kind), FRAME)
    )
    assert np.array_equal(columns(small, "armed ~ I(age**2)"), columns(wide, "armed ~ I(age**2)"))


def test_numeric_years_in_plan_table_match_study_labels() -> None:
    years = [{"id": "year", "choices": ["2024", "2025"]}]
    study = Study({**studies.document(studies.YES_NO), "public": years})
    for kind in ("float64", "int16"):
        known = people_of_table(pd.DataFrame({"year": [2024, 2025]}).astype(kind), ["year"])
        assert list(as_the_study_says(known, study.public).frame["year"]) == ["2024", "2025"]


DATES = pd.Timestamp("2026-01-01") + pd.to_timedelta(AGES, unit="D")
TIMES = {
    "dates": DATES,
    "with a zone": DATES.tz_localize("UTC"),
    "of Python": [one.date() for one in DATES],
    "months": DATES.to_period("M"),
    "times of day": [datetime.time(one % 24) for one in AGES],
    "of Arrow": pd.Series(DATES).astype("timestamp[ns][pyarrow]"),
    "of Arrow, without a time": pd.Series(DATES).astype("date32[pyarrow]"),
}


@pytest.mark.parametrize("values", TIMES.values(), ids=list(TIMES))
def test_dates_are_rejected_with_column_name(values: object) -> None:
    frame = FRAME.assign(age=values)
    with raises(InputError, "table.columns_invalid", "column age", "2026-03") as refused:
        survey_of(frame, DESIGN)
    assert str(refused.value).startswith("column age")
    assert survey_of(frame, DESIGN, ["armed", "kids"]).n == len(frame)
    analysis = assemble(survey_of(FRAME, DESIGN), "armed ~ age")
    with raises(InputError, "table.columns_invalid", "the census: column age", "2026-03"):
        people_of(analysis, survey_of(FRAME, DESIGN), Population(census=frame))
    with raises(InputError, "table.columns_invalid", "the table of people: column age", "2026-03"):
        people_of_table(frame, ["age"])
    durations = pd.Series(pd.to_timedelta(AGES, unit="D")).astype("duration[ns][pyarrow]")
    with raises(InputError, "table.columns_invalid", "column age", "durations"):
        survey_of(FRAME.assign(age=durations), DESIGN)
