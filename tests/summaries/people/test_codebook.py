"""Cells mean what the codebook says; what looks odd without one is refused."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from summaries.people.codebook import Column, drafted, read_codebook, stated, typed
from summaries.people.files import read_frame
from tests.kit.errors import raises


def table(*cells, name="x"):
    return pd.DataFrame({name: pd.Series(cells, dtype=object)}).set_axis(range(1, len(cells) + 1), axis=0)


@pytest.mark.parametrize(
    ("cells", "code"),
    [
        (["18", "40", "-99"], ("table.looks_missing", "'-99' in 1 row")),
        (["18", "40", "999", "999"], ("table.looks_missing", "'999' in 2 rows")),
        (["0", "3", "-1"], "table.looks_missing"),
        (["north", "?"], "table.looks_missing"),
        (["yes", "no", "Refused"], "table.looks_missing"),
        (["18-29", "18–29"], ("table.levels_alike", r"18\u201329")),
        (["New York", "New  York"], ("table.levels_alike", "New␣␣York")),
        (["north", "north\u200b"], "table.levels_alike"),
        (["north", "Don\u2019t know"], "table.looks_missing"),
        (["7,5", "8"], "table.decimal_comma"),
        (["e\u0301", "\u00e9"], "table.levels_alike"),
        (["North", "north"], "table.levels_alike"),
    ],
)
def test_odd_cells_are_refused_until_the_codebook_decides(cells, code):
    with raises(InputError, code) as caught:
        stated(table(*cells), "a.csv")
    assert len(str(caught.value)) <= 160
    assert stated(table(*cells), "a.csv", {"x": Column(type="text")})["x"].tolist() == cells


@pytest.mark.parametrize(
    "cells",
    [
        # An age of 99 among others near it, temperatures below 0, and a code of one place.
        ["18", "97", "99"],
        ["-9", "-3", "4"],
        ["1", "2", "8"],
        ["north", "none"],
        ["9", "99"],
    ],
)
def test_plausible_cells_are_taken_as_they_are(cells):
    assert list(map(str, stated(table(*cells), "a.csv")["x"])) == [
        str(float(cell)) if cell.lstrip("-").isdigit() else cell for cell in cells
    ]


def test_missing_codes_of_the_codebook_are_blank():
    found = stated(table("18", "-99", "40"), "a.csv", {"x": Column(missing=("-99",))})["x"]
    assert found.isna().tolist() == [False, True, False]
    numbers = pd.DataFrame({"x": [18.0, -99.0]})
    assert stated(numbers, "a.parquet", {"x": Column(missing=("-99",))})["x"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("entry", "cell"),
    [
        (Column(levels=("north", "south")), "west"),
        (Column(bounds=(0, 120)), "130"),
        (Column(type="number"), "thirty"),
        (Column(bounds=(0, 120)), "thirty"),
    ],
)
def test_cell_that_contradicts_the_codebook_is_named(entry, cell):
    good = entry.levels[0] if entry.levels else "1"
    with raises(InputError, ("codebook.contradicted", "row 2", cell)):
        stated(table(good, cell), "a.csv", {"x": entry})
    with raises(InputError, ("codebook.contradicted", "row 2")) as caught:
        stated(table(good, cell), "a.csv", {"x": entry}, bounds={"x": (0, 120)})
    assert cell not in str(caught.value)


def test_private_cells_are_in_no_message():
    for cells in (["1", "2", "-99"], ["a", "A"], ["a", "?"]):
        with pytest.raises(InputError) as caught:
            stated(table(*cells, name="q"), "file", bounds={"q": (0, 5)})
        assert not any(f"'{cell}'" in str(caught.value) for cell in cells)
        assert "-99" not in str(caught.value)


def test_words_of_missing_values_are_blank_except_levels():
    assert typed(pd.Series(["NA", "ZA", ""], dtype=object)).isna().tolist() == [True, False, True]
    assert typed(pd.Series(["NA", "ZA"], dtype=object), Column(levels=("NA", "ZA"))).notna().all()


def test_codes_may_be_written_with_a_point():
    entry = {"x": Column(type="number", missing=("-99",))}
    assert stated(table("18", "-99.0"), "a.csv", entry)["x"].isna().tolist() == [False, True]
    entry = {"x": Column(type="number", missing=("-99.0",))}
    assert stated(table("18", "-99"), "a.csv", entry)["x"].isna().tolist() == [False, True]


def test_draft_names_codes_among_words_and_numbers():
    cells = ["1", "7", "60", "-99", "-99", "Refused"] * 3
    entries, lines = drafted(pd.DataFrame({"drinks": pd.Series(cells, dtype=object)}))
    assert entries == {"drinks": {"missing": ["Refused", "-99"], "type": "number", "bounds": [1.0, 60.0]}}
    assert [line.split(" in ")[0] for line in lines] == ["drinks: 'Refused'", "drinks: '-99'"]


def test_a_level_may_be_written_with_a_point():
    cells = pd.Series(["1.0", "2", None, "003.0"], dtype=object)
    assert list(typed(cells, Column(levels=("1", "2", "003.0")))) == ["1", "2", None, "003.0"]


def test_numbers_of_other_formats_are_levels_if_the_codebook_says_so():
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan]}, index=[1, 2, 3])
    for entry in (Column(levels=("1", "2")), Column(type="text")):
        assert stated(frame, "a.dta", {"x": entry})["x"].tolist() == ["1", "2", None]


def test_codes_beyond_the_bounds_of_a_study_are_refused():
    for cells in (["18", "80", "99"], ["8", "08", "99"], ["99", "99"]):
        with raises(InputError, "table.looks_missing") as caught:
            stated(table(*cells), "a.csv", bounds={"x": (0, 90)})
        assert "99" not in str(caught.value)


def test_column_of_lists_is_refused_where_it_is_used():
    frame = table(["a", "b"], "c").assign(y=[1, 2])
    assert stated(frame, "a.json", columns=["y"])["y"].tolist() == [1, 2]
    with raises(InputError, ("table.holds_list", "row 1")):
        stated(frame, "a.json")
    entries, lines = drafted(frame)
    assert list(entries) == ["y"]
    assert lines[0].startswith("x: left out")
    assert drafted(pd.DataFrame({"y": pd.Series([1, None], dtype="Int64")}))[0]["y"]["bounds"] == [1, 1]


def test_draft_of_a_column_with_one_number_can_be_read(tmp_path):
    entries, _ = drafted(table("40", "40"))
    (tmp_path / "c.json").write_text(json.dumps(entries))
    assert read_codebook(str(tmp_path / "c.json"))["x"].bounds == (40, 40)


def test_truth_values_of_any_file_are_the_same_texts():
    for column in (pd.Series([True, None], dtype="boolean"), pd.Series([True, None], dtype=object)):
        assert typed(column).tolist() == ["true", None]
    assert typed(pd.Series([True, False])).tolist() == ["true", "false"]


@pytest.mark.parametrize(
    "document",
    [
        "[]",
        "{",
        '{"x": {"kind": "number"}}',
        '{"x": {"type": "date"}}',
        '{"x": {"levels": "a"}}',
        '{"x": {"bounds": [2, 1]}}',
        '{"x": {"bounds": [1, "2"]}}',
        '{"x": {"bounds": ["a", "b"]}}',
    ],
)
def test_wrong_codebook_is_rejected(document, tmp_path):
    (tmp_path / "c.json").write_text(document)
    with pytest.raises(InputError):
        read_codebook(str(tmp_path / "c.json"))


def test_codebook_of_another_table_is_rejected():
    with raises(InputError, ("codebook.unknown_column", "age")):
        stated(table("1"), "a.csv", {"age": Column()})


def test_draft_is_a_codebook_that_its_table_satisfies(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("age,region,id\n18,north,001\n40,?,002\n-99,south,003\n")
    out = tmp_path / "codebook.json"
    assert main(["codebook", str(tmp_path / "a.csv"), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "age: '-99' in 1 row looks missing" in printed
    assert "region: '?' in 1 row" in printed
    assert json.loads(out.read_text())["age"] == {
        "missing": ["-99"],
        "type": "number",
        "bounds": [18.0, 40.0],
    }
    found = stated(read_frame(str(tmp_path / "a.csv")), "a.csv", read_codebook(str(out)))
    assert found["age"].dtype == np.float64
    assert found["region"].tolist() == ["north", None, "south"]
    assert drafted(read_frame(str(tmp_path / "a.csv")))[0]["id"] == {"levels": ["001", "002", "003"]}
