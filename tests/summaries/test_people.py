"""Files of people are read to the same cells, which mean what the codebook says; odd cells are refused."""

import json

import numpy as np
import pandas as pd
import pytest

from ldp_client.documents.errors import InputError
from ldpkit.cli import main
from summaries.people.codebook import Column, drafted, read_codebook, stated
from summaries.people.files import read_frame
from tests.kit.errors import raises

CSV = "age,sex\n30,f\n41,\n"
ROWS = [{"age": 30, "sex": "f"}, {"age": 41, "sex": None}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV.encode()),
        ("a.csv", ("\ufeff" + CSV).encode()),
        ("a.csv", CSV.encode("utf-16")),
        ("a.csv", CSV.replace(",", ";").encode()),
        ("a.tsv", CSV.replace(",", "\t").encode()),
        ("a.txt", b"sep=;\r\n" + CSV.replace(",", ";").replace("\n", "\r\n").encode()),
        ("a.csv", b"\n age , sex\n30, f \n\n41,\n\n"),
        ("a.csv", (CSV + ",\n , \n").encode()),
        ("a.json", json.dumps(ROWS).encode()),
        ("a.ndjson", "\n".join(map(json.dumps, ROWS)).encode()),
        # As Kobo's second API has it.
        ("a.json", json.dumps({"count": 2, "next": None, "results": ROWS}, indent=1).encode()),
    ],
)
def test_each_format_gives_the_same_cells(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    frame = read_frame(str(tmp_path / name))
    assert list(frame.columns) == ["age", "sex"]
    assert list(frame.index) == [1, 2]
    assert list(map(str, frame["age"])) == ["30", "41"]
    assert frame["sex"][1] == "f"
    assert frame["sex"].isna().tolist() == [False, True]


def test_formats_of_statistics_programs_keep_numbers_and_labels(tmp_path):
    frame = pd.DataFrame({"age": [30.0, 41.5], "sex": pd.Categorical(["f", "m"])})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_stata(tmp_path / "a.dta", write_index=False)
    for name in ("a.parquet", "a.dta"):
        found = read_frame(str(tmp_path / name))
        assert list(found["age"]) == [30.0, 41.5]
        assert list(found["sex"]) == ["f", "m"]


def test_cells_keep_inner_lines_and_inner_objects_are_columns(tmp_path):
    (tmp_path / "a.csv").write_text("note\na\u2028\x0b\x85b\n", encoding="utf-8")
    assert read_frame(str(tmp_path / "a.csv"))["note"].tolist() == ["a\u2028\x0b\x85b"]
    row = '{"note": "a\u2028\x85b", "pressure": {"age": 30}}\n'
    (tmp_path / "a.ndjson").write_text(row * 2, encoding="utf-8")
    frame = read_frame(str(tmp_path / "a.ndjson"))
    assert list(frame.columns) == ["note", "pressure.age"]
    assert frame["note"].tolist() == ["a\u2028\x85b"] * 2


@pytest.mark.parametrize(
    ("name", "content", "code"),
    [
        ("a.csv", "", "files.no_header"),
        ("a.csv", "age,age\n1,2\n", "table.wrong_header"),
        ("a.csv", "age,\n1,2\n", "table.wrong_header"),
        ("a.csv", "age,sex\n1\n", ("table.wrong_column_count", "row 1")),
        ("a.csv", 'age\n"1\n', "files.not_csv"),
        ("a.json", "[1]", "files.line_object"),
        ("a.json", "{", "files.not_json"),
        ("a.json", "1", "files.line_object"),
        ("a.json", '{"next": "https://k.example/?start=100", "results": [{"age": 1}]}', "files.one_page"),
        ("a.parquet", "x", "files.damaged_table"),
        ("a.xlsx", "x", "files.workbook"),
        ("a.csv", b"age\n\xff\n", "files.not_utf8"),
        ("a.csv", None, "files.cannot_read"),
    ],
)
def test_file_that_is_no_table_is_rejected(name, content, code, tmp_path):
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with raises(InputError, code):
        read_frame(str(tmp_path / name))


def table(*cells):
    return pd.DataFrame({"x": pd.Series(cells, dtype=object)}).set_axis(range(1, len(cells) + 1), axis=0)


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
    ("cells", "entry", "expected"),
    [
        # An age of 99 among others near it, temperatures below 0, and a code of one place.
        (["18", "97", "99"], Column(), [18, 97, 99]),
        (["-9", "-3", "4"], Column(), [-9, -3, 4]),
        (["1", "2", "8"], Column(), [1, 2, 8]),
        (["9", "99"], Column(), [9, 99]),
        (["north", "none"], Column(), ["north", "none"]),
        (["18", "-99", "40"], Column(missing=("-99",)), [18, None, 40]),
        (pd.Series([18.0, -99.0]), Column(missing=("-99",)), [18, None]),
        # Codes and levels may be written with a point.
        (["18", "-99.0"], Column(type="number", missing=("-99",)), [18, None]),
        (["18", "-99"], Column(type="number", missing=("-99.0",)), [18, None]),
        (["1.0", "2", None, "003.0"], Column(levels=("1", "2", "003.0")), ["1", "2", None, "003.0"]),
        (pd.Series([1.0, 2.0, np.nan]), Column(levels=("1", "2")), ["1", "2", None]),
        (pd.Series([1.0, 2.0, np.nan]), Column(type="text"), ["1", "2", None]),
        # As numbers, ids of 16 digits may be one, and clinics 07 and 7 would be.
        (["9" * 15, "1e300", "+8"], Column(), [999999999999999, 1e300, 8]),
        (["9" * 16, "1"], Column(), ["9" * 16, "1"]),
        (["1.5", "07", "7"], Column(), ["1.5", "07", "7"]),
        # A word of a missing value may be a level.
        (["NA", "ZA", ""], Column(), [None, "ZA", None]),
        (["NA", "ZA"], Column(levels=("NA", "ZA")), ["NA", "ZA"]),
        (pd.Series([True, None], dtype="boolean"), Column(), ["true", None]),
        (pd.Series([True, None], dtype=object), Column(), ["true", None]),
        (pd.Series([True, False]), Column(), ["true", "false"]),
    ],
)
def test_cells_are_typed_as_the_codebook_states(cells, entry, expected):
    frame = table(*cells) if isinstance(cells, list) else pd.DataFrame({"x": cells})
    found = stated(frame, "a.csv", {"x": entry})["x"]
    assert [None if blank else cell for cell, blank in zip(found, found.isna())] == expected


@pytest.mark.parametrize(
    ("entry", "cell"),
    [
        (Column(levels=("north", "south")), "west"),
        (Column(bounds=(0, 120)), "130"),
        (Column(type="number"), "thirty"),
        (Column(bounds=(0, 120)), "thirty"),
    ],
)
def test_cell_that_contradicts_the_codebook_is_named_unless_it_is_private(entry, cell):
    cells = table(entry.levels[0] if entry.levels else "1", cell)
    with raises(InputError, "codebook.contradicted", "row 2", cell):
        stated(cells, "a.csv", {"x": entry})
    with raises(InputError, "codebook.contradicted", "row 2") as caught:
        stated(cells, "a.csv", {"x": entry}, bounds={"x": (0, 120)})
    assert cell not in str(caught.value)
    with raises(InputError, "codebook.unknown_column", "age"):
        stated(cells, "a.csv", {"age": Column()})


@pytest.mark.parametrize("cells", [["18", "80", "99"], ["8", "08", "99"], ["99", "99"], ["1", "2", "-99"]])
def test_codes_beyond_the_bounds_of_a_study_are_refused_and_not_shown(cells):
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


@pytest.mark.parametrize(
    ("document", "bounds"),
    [
        ("[]", None),
        ("{", None),
        ('{"x": {"kind": "number"}}', None),
        ('{"x": {"type": "date"}}', None),
        ('{"x": {"levels": "a"}}', None),
        ('{"x": {"bounds": [2, 1]}}', None),
        ('{"x": {"bounds": [1, "2"]}}', None),
        (json.dumps(drafted(table("40", "40"))[0]), (40, 40)),
        (json.dumps(drafted(pd.DataFrame({"x": pd.Series([1, None], dtype="Int64")}))[0]), (1, 1)),
    ],
)
def test_wrong_codebook_is_rejected_and_a_draft_is_read(document, bounds, tmp_path):
    (tmp_path / "c.json").write_text(document)
    if bounds is not None:
        assert read_codebook(str(tmp_path / "c.json"))["x"].bounds == bounds
        return
    with raises(InputError, "files.not_json" if document == "{" else "codebook.invalid"):
        read_codebook(str(tmp_path / "c.json"))


def test_draft_is_a_codebook_that_its_table_satisfies(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("age,region,id\n18,north,001\n40,?,002\n-99,south,003\n")
    out = tmp_path / "codebook.json"
    assert main(["codebook", str(tmp_path / "a.csv"), "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "age: '-99' in 1 row looks missing" in printed
    assert "region: '?' in 1 row" in printed
    age = json.loads(out.read_text())["age"]
    assert age == {"missing": ["-99"], "type": "number", "bounds": [18.0, 40.0]}
    found = stated(read_frame(str(tmp_path / "a.csv")), "a.csv", read_codebook(str(out)))
    assert found["age"].dtype == np.float64
    assert found["region"].tolist() == ["north", None, "south"]
    assert drafted(read_frame(str(tmp_path / "a.csv")))[0]["id"] == {"levels": ["001", "002", "003"]}
