"""Tables of people in several formats are read to the same cells."""

import json

import pandas as pd
import pytest

from ldp_client.documents.errors import InputError
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
