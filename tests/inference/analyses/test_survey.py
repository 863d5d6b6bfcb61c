"""Tables and their designs are read without loss: levels stay apart, blanks are refused or counted."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from inference.analyses.design_file import read_design
from inference.analyses.population import Population, people_of
from inference.analyses.program import assemble
from inference.analyses.public_columns import as_taken, notes_of
from inference.analyses.survey import codes_of, load_survey, survey_of
from ldp_client.documents.errors import InputError
from summaries.people.codebook import read_census, typed
from summaries.people.files import read_frame
from tests.inference.analyses.simulated import MATRIX, design, forced, write
from tests.kit.errors import raises

DESIGN = design(armed={})
GOOD = [["no", 30, ""], ["yes", 31, ""], ["no", 32, ""], ["yes", 33, ""]]


def loaded(folder, rows, text=DESIGN, **options):
    path = write(folder / "t.csv", ["armed", "place", "note"], rows)
    (folder / "design.json").write_text(text, encoding="utf-8")
    return load_survey(path, str(folder / "design.json"), "armed ~ place", **options)[0]


def at_places(folder, places, text=DESIGN, **options):
    rows = [[("no", "yes")[row % 2], place, row] for place in places for row in range(4)]
    return loaded(folder, rows, text, **options)


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (["maybe", 34, ""], ("dice.unknown_report", "5")),
        (["", 34, ""], ("table.blank_cells", "5")),
        (["no", "", ""], ("table.blank_cells", "5")),
        (["no", "unknown", ""], ("table.looks_missing", "place")),
        (["no", "thirty", ""], ("table.numbers_and_words", "5")),
        (["no", "inf", ""], ("table.numbers_and_words", "5")),
        (["no", 34], ("table.wrong_column_count", "5")),
    ],
)
def test_row_that_cannot_be_used_is_named(row, code, tmp_path):
    with raises(InputError, code):
        loaded(tmp_path, [*GOOD, row])


def test_dropped_rows_are_counted_in_a_note(tmp_path):
    """Blanks of a column that the formula does not name are no matter."""
    table = loaded(tmp_path, [*GOOD, ["", 34, "x"], ["no", "", "x"]], drop=True)
    assert table.n == 4
    assert any(note.startswith("2 rows of 6 had blank cells") for note in table.notes)
    with raises(InputError, "table.all_rows_blank"):
        loaded(tmp_path, [["", 34, "x"]], drop=True)


def test_reports_may_be_numbers():
    assert list(codes_of(typed(pd.Series(["1.0", "0"])), ["0", "1"], "q")) == [1, 0]
    assert list(codes_of(pd.Series([True, False]), ["false", "true"], "q")) == [1, 0]


def test_each_group_of_rows_has_its_matrix(tmp_path):
    parts = [{"rows": {"place": one}, "design": "warner", "p": p} for one, p in (("1", "0.7"), ("2", "0.9"))]
    text = design(armed={"matrices": parts})
    column = at_places(tmp_path, [1, 2], text).private["armed"]
    assert column.choices.vectors[0, column.codes].max(axis=1) == pytest.approx([0.7] * 4 + [0.9] * 4)
    with raises(InputError, "dice.unknown_group", "9"):
        at_places(tmp_path, [1, 2, 3], text)


IDS = [12345678901230001 + place for place in range(32)]


@pytest.mark.attack(19)
def test_long_ids_stay_apart(tmp_path):
    """Clinics have ids of seventeen digits, of which float64 would make neighbours equal."""
    table = at_places(tmp_path, IDS)
    analysis = assemble(table, "armed ~ 1 + (1 | place)")
    assert analysis.groups[0].levels == tuple(map(str, IDS))
    assert any("holds numbers as text" in note for note in table.notes)
    census = read_census(write(tmp_path / "c.csv", ["place", "count"], [[one, 5] for one in IDS]))
    frame, _ = people_of(analysis, table, Population(census=census))
    assert frame["place"].nunique() == len(IDS)
    parts = [{"rows": {"place": str(one)}, "matrix": MATRIX} for one in IDS]
    codes = at_places(tmp_path, IDS, design(armed={"matrices": parts})).private["armed"].codes
    assert len(np.unique(codes)) == 2 * len(IDS)


def test_blank_cells_are_read_alike_in_csv_and_parquet(tmp_path):
    (tmp_path / "one.csv").write_text("armed\nno\n\nyes\n\n\n")
    assert read_frame(str(tmp_path / "one.csv"))["armed"].isna().tolist() == [False, True, False]
    cells = ["A", "A ", "", " ", None, "B"]
    pd.DataFrame({"place": cells}).to_parquet(tmp_path / "two.parquet")
    found = read_frame(str(tmp_path / "two.parquet"))["place"]
    assert found.isna().tolist() == [False, False, True, True, True, False]
    assert found.dropna().tolist() == ["A", "A", "B"]


@pytest.mark.attack(19)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_label_that_looks_blank_stays_a_label(kind, tmp_path):
    """NA is Namibia in a study's census, and a report of a design; neither may be dropped as missing."""

    def saved(name, **columns):
        path, frame = str(tmp_path / f"{name}.{kind}"), pd.DataFrame(columns)
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path)
        return path

    table = forced({"land": pd.Categorical(["ZA", "NA"] * 20, categories=["ZA", "NA"])})
    census = read_census(saved("census", land=["ZA", "NA"], count=[200, 100]))
    frame, counts = people_of(assemble(table, "armed ~ land"), table, Population(census=census))
    assert (list(frame["land"]), list(counts)) == (["ZA", "NA"], [200, 100])
    (tmp_path / "design.json").write_text(design(armed={"reports": ["no", "NA"]}))
    reports = saved("a", armed=["no", "NA", "NA"])
    read, _ = load_survey(reports, str(tmp_path / "design.json"), "armed ~ 1")
    assert read.private["armed"].codes.tolist() == [0, 1, 1]


OF_ARMED = read_design(DESIGN)
AGES = np.arange(20, 100)
FRAME = pd.DataFrame(
    {"armed": ["no", "yes"] * 40, "age": AGES, "kids": AGES % 7, "year": 1995 + AGES % 11, "count": 1}
)


@pytest.mark.attack(17)
@pytest.mark.parametrize("kind", ["uint8", "float16", "uint8[pyarrow]"])
def test_small_integers_do_not_wrap_around(kind):
    """Ages come as bytes, whose squares would be wrong without a message, in tables and censuses."""
    small = FRAME.astype({"age": kind, "kids": kind, "count": kind})
    formula = "armed ~ I(age**2) + age:kids + (I(age*kids) | year)"
    found, wanted = (assemble(survey_of(frame, OF_ARMED), formula) for frame in (small, FRAME))
    for one, other in ((found.law, wanted.law), (found.groups[0], wanted.groups[0])):
        assert np.array_equal(one.matrix.values, other.matrix.values)
    table, over = survey_of(FRAME, OF_ARMED), Population(census=small[["age", "count"]])
    frame, counts = people_of(assemble(table, "armed ~ I(age**2)"), table, over)
    assert (frame["age"].dtype, counts.sum()) == (np.float64, 80)


DATES = pd.Timestamp("2026-01-01") + pd.to_timedelta(AGES, unit="D")


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (DATES, "table.holds_other_values"),
        (pd.Series(DATES).astype("date32[pyarrow]"), "table.holds_other_values"),
        (pd.to_timedelta(AGES, unit="D"), "table.holds_other_values"),
        ([[one] for one in AGES], "table.holds_other_values"),
        (["1", 1] * 40, "table.holds_other_values"),
        (["2", "3", "old", "4"] * 20, "table.numbers_and_words"),
        # Long ids may be numbers in Parquet, where nobody can tell which were merged.
        ([2.0**53, 1.0] * 40, "table.too_many_digits"),
        ([2**53, 1] * 40, "table.too_many_digits"),
        ([Decimal(2**53), Decimal(1)] * 40, "table.too_many_digits"),
    ],
)
def test_cells_that_are_neither_numbers_nor_levels_are_refused(values, code):
    frame = FRAME.assign(age=values)
    with raises(InputError, code, "column age") as error:
        survey_of(frame, OF_ARMED)
    assert "\n" not in str(error.value)
    assert survey_of(frame, OF_ARMED, ["armed", "kids"]).n == 80


def test_exact_decimals_are_numbers_and_numbers_as_text_are_noted():
    frame = pd.DataFrame({"x": [Decimal(20), None], "y": ["20", "30"]})
    assert as_taken(frame, ["x"])["x"].dtype == np.float64
    (note,) = notes_of(frame, ["y"])
    assert note.startswith("y holds numbers as text")
