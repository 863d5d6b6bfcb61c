"""Tables and their designs are read without loss: levels stay apart, blanks are refused or counted."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from inference.analyses.assembling import assemble
from inference.analyses.design_file import read_design
from inference.analyses.population import Population, people_of
from inference.analyses.survey import (
    DROP,
    codes_of,
    load_survey,
    load_waves,
    read_frame,
    survey_of,
    typed,
)
from inference.analyses.table import Table
from inference.design.people import as_the_study_says, people_of_table
from inference.design.possible_reports import possible_of_design, possible_of_study
from ldp_client.documents.errors import InputError
from schemas import Study
from tests import studies
from tests.inference.analyses.simulated import MATRIX, design, forced, write
from tests.kit.errors import raises

DESIGN = design(armed={})
HOUSES = [f"{village}.{house}" for village in (1, 2) for house in range(1, 31)]
TWO_CODES = ("table.two_codes_one_number", "1.1 and 1.10")


def load(folder: Path, column: list[object], text: str = DESIGN, also: tuple[str, ...] = ("place",)) -> Table:
    """Four reports of each value of `place`."""
    rows = [(("no", "yes")[row % 2], value, row) for value in column for row in range(4)]
    path = write(folder / "t.csv", ["armed", "place", "income"], rows)
    (folder / "design.json").write_text(text, encoding="utf-8")
    return load_survey(path, str(folder / "design.json"), "armed ~ 1", also=also)[0]


def fault(folder: Path, rows: list[list[object]], blanks: str = "error") -> Table:
    path = write(folder / "t.csv", ["armed", "age", "note"], rows)
    (folder / "design.json").write_text(DESIGN)
    return load_survey(path, str(folder / "design.json"), "armed ~ age", blanks)[0]


GOOD = [["no", 30, ""], ["yes", 31, ""], ["no", 32, ""], ["yes", 33, ""]]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (["maybe", 34, ""], ("dice.unknown_report", "5")),
        (["", 34, ""], ("table.blank_cells", "5")),
        (["no", "", ""], ("table.blank_cells", "5")),
        (["no", "unknown", ""], ("table.numbers_and_words", "5")),
        (["no", "inf", ""], ("table.numbers_and_words", "5")),
        (["no", 34], ("table.wrong_column_count", "5")),
    ],
)
def test_row_that_cannot_be_used_is_named(row: list[object], code: Any, tmp_path: Path) -> None:
    with raises(InputError, code):
        fault(tmp_path, [*GOOD, row])


def test_dropped_rows_are_counted_in_a_note(tmp_path: Path) -> None:
    """Blanks of a column that the formula does not name are no matter."""
    table = fault(tmp_path, [*GOOD, ["", 34, "x"], ["no", "", "x"]], DROP)
    assert table.n == 4
    assert any(note.startswith("2 rows of 6 had blank cells") for note in table.notes)
    with raises(InputError, "table.all_rows_blank"):
        fault(tmp_path, [["", 34, "x"]], DROP)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "table.empty"),
        ("armed,armed\nno,no\n", "table.wrong_header"),
        ("armed;age\nno;3\n", "table.semicolons"),
        ('armed,age\n"no,3\n', "files.not_csv"),
        ("armed,sex\nno,3\n", "table.unknown_column"),
    ],
)
def test_file_that_is_no_table_is_rejected(text: str, code: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    (tmp_path / "design.json").write_text(DESIGN)
    with raises(InputError, code):
        load_survey(str(tmp_path / "t.csv"), str(tmp_path / "design.json"), "armed ~ age")


def test_unreadable_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"armed\n\xff\n")
    (tmp_path / "t.parquet").write_bytes(b"no")
    for name, code in (("t.csv", "utf8"), ("t.parquet", "parquet"), ("none.csv", "readable")):
        with raises(InputError, f"files.not_{code}"):
            read_frame(str(tmp_path / name))


def test_reports_may_be_spelt_as_other_numbers() -> None:
    """1.0 is report 1, but a number that is two labels is refused."""
    assert list(codes_of(pd.Series(["1.0", "0"]), ["0", "1"], "q")) == [1, 0]
    assert list(codes_of(pd.Series([1.1, 2.0]), ["1.10", "2"], "q")) == [0, 1]
    with raises(InputError, "dice.number_is_several_reports", "1.1"):
        codes_of(pd.Series([1.1, 2.0]), ["1.1", "1.10", "2"], "q")


def test_each_group_of_rows_has_its_matrix(tmp_path: Path) -> None:
    parts = [{"rows": {"place": one}, "design": "warner", "p": p} for one, p in (("1", "0.7"), ("2", "0.9"))]
    text = design(armed={"matrices": parts})
    column = load(tmp_path, [1, 2], text).private["armed"]
    assert column.choices.vectors[0, column.codes].max(axis=1) == pytest.approx([0.7] * 4 + [0.9] * 4)
    with raises(InputError, "dice.unknown_group", "9"):
        load(tmp_path, [1, 2, 3], text)


@pytest.mark.attack(19)
@pytest.mark.parametrize(
    ("formula", "over"),
    [
        ("armed ~ 1 + (1 | place)", Population()),
        ("armed ~ C(place)", Population()),
        ("armed ~ place", Population(by="place")),
    ],
)
def test_codes_that_are_one_number_are_rejected_as_levels(
    formula: str, over: Population, tmp_path: Path
) -> None:
    """Houses are named 1.1 to 1.30: read as numbers, 1.1 and 1.10 would silently be one cluster."""
    table = load(tmp_path, HOUSES)
    with raises(InputError, TWO_CODES):
        over.checked(table) and assemble(table, formula)


def test_numbers_stay_predictors_and_padded_codes_stay_levels(tmp_path: Path) -> None:
    assemble(load(tmp_path, HOUSES), "armed ~ place + I(place**2)")
    padded = load(tmp_path, [f"1.{house:02}" for house in range(1, 31)])
    assert len(assemble(padded, "armed ~ 1 + (1 | place)").groups[0].levels) == 30


@pytest.mark.attack(19)
def test_codes_of_one_number_are_rejected_in_every_table(tmp_path: Path) -> None:
    """A design's rows, two waves, a census and a plan's table of people would each merge 1.1 with 1.10."""
    parts = [{"rows": {"place": one}, "matrix": MATRIX} for one in ("1.1", "2.5")]
    by_rows = design(armed={"matrices": parts})
    with raises(InputError, TWO_CODES):
        load(tmp_path, ["1.1", "1.10", "2.5"], by_rows)
    with raises(InputError, TWO_CODES):
        possible_of_design(read_design(by_rows), "armed ~ 1", read_frame(str(tmp_path / "t.csv")))
    rows = {"a": ["1.1", "1.2"], "b": ["1.10", "1.2"]}
    waves = {
        name: write(tmp_path / f"{name}.csv", ["armed", "place"], [("no", one) for one in places])
        for name, places in rows.items()
    }
    (tmp_path / "design.json").write_text(DESIGN)
    table, _ = load_waves(waves, str(tmp_path / "design.json"), "armed ~ place", "error", ())
    with raises(InputError, TWO_CODES):
        assemble(table, "armed ~ 1 + (1 | place)")
    census = read_frame(write(tmp_path / "c.csv", ["place", "count"], [["1.1", 5], ["1.10", 7]]))
    table = forced({"place": pd.Categorical(["1.1", "1.10"] * 20)})
    with raises(InputError, TWO_CODES, "the census"):
        people_of(assemble(table, "armed ~ place"), table, Population(census=census))
    fields = Study(
        studies.document(studies.YES_NO, public=[{"id": "place", "choices": ["1.1", "1.10"]}])
    ).public
    with raises(InputError, TWO_CODES, "the table of people"):
        as_the_study_says(people_of_table(census, ["place"]), fields)


IDS = [12345678901230001 + place for place in range(32)]


@pytest.mark.attack(19)
def test_long_ids_stay_apart(tmp_path: Path) -> None:
    """Clinics have ids of seventeen digits, of which float64 would make neighbours equal."""
    table = load(tmp_path, list(IDS))
    analysis = assemble(table, "armed ~ 1 + (1 | place)")
    assert analysis.groups[0].levels == tuple(map(str, IDS))
    assert any("holds numbers as text" in note for note in table.notes)
    census = read_frame(write(tmp_path / "c.csv", ["place", "count"], [[one, 5] for one in IDS]))
    frame, _ = people_of(analysis, table, Population(census=census))
    assert frame["place"].nunique() == len(IDS)
    parts = [{"rows": {"place": str(one)}, "matrix": MATRIX} for one in IDS]
    codes = load(tmp_path, list(IDS), design(armed={"matrices": parts}), ()).private["armed"].codes
    assert len(np.unique(codes)) == 2 * len(IDS)


@pytest.mark.attack(19)
@pytest.mark.parametrize(
    "values",
    [np.asarray(IDS, np.int64), np.asarray(IDS, np.float64), [Decimal(one) for one in IDS]],
    ids=["whole", "with blanks", "decimals"],
)
def test_long_numbers_in_other_files_are_refused(values: Any) -> None:
    """In Parquet long ids are numbers already, so that nobody can tell which were merged."""
    frame = pd.DataFrame({"armed": ["no", "yes"] * 16, "place": values})
    with raises(InputError, "table.columns_invalid", "column place", "(c12345678901"):
        survey_of(frame, read_design(DESIGN))
    assert survey_of(frame, read_design(DESIGN), ["armed"]).n == len(IDS)


@pytest.mark.attack(19)
def test_codes_that_differ_only_in_zeros_are_refused(tmp_path: Path) -> None:
    """As numbers, clinics 007 and 7 would be one."""
    with raises(InputError, "table.columns_invalid", "column place", "007 and 7"):
        load(tmp_path, ["007", "7", "12"])
    assert load(tmp_path, ["007", "7", "12"], also=()).n == 12


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        ([str(2**53 - 1), "1"], True),
        ([str(2**53), "1"], False),
        (["0.12345678901234567", "1e300", "-7", "+8", "009"], True),
        (["1.5", "07", "7"], True),
        (["1_000", "2"], False),
    ],
)
def test_cells_are_numbers_if_they_stay_distinct(cells: list[str], numbers: bool) -> None:
    assert (typed(cells).dtype == np.float64) == numbers


def test_blank_cells_are_read_alike_in_csv_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("armed\nno\n\nyes\n\n\n")
    assert read_frame(str(tmp_path / "one.csv"))["armed"].isna().tolist() == [False, True, False]
    cells = ["A", "A ", "", " ", None, "B"]
    kinds = pd.Categorical(cells, categories=["B", "A ", "A", " ", ""])
    pd.DataFrame({"place": cells, "kind": kinds}).to_parquet(tmp_path / "two.parquet")
    found = read_frame(str(tmp_path / "two.parquet"))
    for name in ("place", "kind"):
        assert found[name].isna().tolist() == [False, False, True, True, True, False]
        assert found[name].dropna().tolist() == ["A", "A", "B"]
    assert list(found["kind"].cat.categories) == ["B", "A"]


@pytest.mark.attack(19)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_label_that_looks_blank_stays_a_label(kind: str, tmp_path: Path) -> None:
    """NA is Namibia in a study's census, and a report of a design; neither may be dropped as missing."""

    def saved(name: str, **columns: list[object]) -> str:
        path = str(tmp_path / f"{name}.{kind}")
        frame = pd.DataFrame(columns)
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        return path

    table = forced({"land": pd.Categorical(["ZA", "NA"] * 20, categories=["ZA", "NA"])})
    census = read_frame(saved("census", land=["ZA", "NA"], count=[200, 100]))
    frame, counts = people_of(assemble(table, "armed ~ land"), table, Population(census=census))
    assert (list(frame["land"]), list(counts)) == (["ZA", "NA"], [200, 100])
    study = Study(studies.document(studies.YES_NO, public=[{"id": "land", "choices": ["ZA", "NA"]}]))
    assert set(possible_of_study(study, "ever ~ land", census).table.public["land"]) == {"ZA", "NA"}
    (tmp_path / "design.json").write_text(design(armed={"reports": ["no", "NA"]}))
    first = saved("a", armed=["no", "NA", "NA"], age=[30, 41, 52])
    waves = {"1": first, "2": saved("b", armed=["NA", "no"], age=[31, 44])}
    both, _ = load_waves(waves, str(tmp_path / "design.json"), "armed ~ wave", "error", ())
    # Each wave has its own two vectors.
    assert (both.private["armed"].codes % 2).tolist() == [0, 1, 1, 1, 0]


@pytest.mark.attack(19)
@pytest.mark.parametrize("label", ["NA", "n/a"])
def test_unlisted_word_for_missing_is_rejected(label: str, tmp_path: Path) -> None:
    """A word such as NA may be a blank or a label; guessing would drop people, or make a level of them."""
    for blanks in ("error", DROP):
        with raises(InputError, "table.columns_invalid", "column age", label):
            fault(tmp_path, [*GOOD, ["no", label, ""]], blanks)
    census = read_frame(write(tmp_path / "c.csv", ["land", "count"], [["ZA", 200], [label, 100]]))
    table = forced({"land": pd.Categorical(["ZA", "BW"] * 20)})
    with raises(InputError, "table.columns_invalid", "the census: column land", label):
        people_of(assemble(table, "armed ~ land"), table, Population(census=census))
