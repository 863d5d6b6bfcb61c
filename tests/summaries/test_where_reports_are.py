"""Reports are read the same wherever they are: files, lines, documents, pandas, Polars, Arrow."""

import io

import pandas as pd
import pyarrow
import pytest

from ldp_client.documents.errors import InputError
from schemas import Study
from schemas.export_end import end_line
from summaries import Summary, cell_summaries, summarize
from tests.kit.errors import raises
from tests.summaries.engines_data import FEW, made, table, write

REPORTS = made(FEW, 30)
RIGHT = summarize(FEW, REPORTS)
LINES = [one.to_json() + "\n" for one in REPORTS]
DOCUMENTS = [one.to_document() for one in REPORTS]
EXPORTED = table(REPORTS)
ROWS = EXPORTED.to_pylist()


class Polars:
    """A table that only has Arrow's own interface, as Polars' and DuckDB's have."""

    __arrow_c_stream__ = EXPORTED.__arrow_c_stream__


def file_of(folder, text=None):
    path = folder / "reports.ndjson"
    path.write_text(text or "".join([*LINES, end_line(len(LINES))]))
    return path


HERE = {
    "lines": lambda _: LINES,
    "a file of bytes": lambda folder: io.BytesIO(file_of(folder).read_bytes()),
    "a path": file_of,
    "a file without an end line": lambda folder: file_of(folder, "".join(LINES)),
    "a file with a byte order mark": lambda folder: file_of(folder, "\ufeff" + "".join(LINES)),
    "joined exports": lambda folder: file_of(
        folder, "".join([*LINES[:9], end_line(9), end_line(0), *LINES[9:], end_line(21)])
    ),
    "a Parquet file": lambda folder: write(folder / "reports.parquet", REPORTS),
    "paths": lambda folder: [file_of(folder)],
    "documents": lambda _: iter(DOCUMENTS),
    "an export that pandas read": lambda folder: pd.read_json(file_of(folder), lines=True),
    "a frame of an export": lambda _: pd.DataFrame(ROWS),
    "an Arrow table": lambda _: EXPORTED,
    "a stream of Arrow batches": lambda _: EXPORTED.to_reader(max_chunksize=7),
    "Polars": lambda _: Polars(),
    "twice the same": lambda _: [*LINES, *LINES],
    "a summary's file": lambda folder: file_of(folder, RIGHT.to_json()),
}


@pytest.mark.parametrize("where", HERE)
def test_summary_is_the_same_for_every_source_of_reports(where, tmp_path):
    assert summarize(FEW, HERE[where](tmp_path)).to_json() == RIGHT.to_json()
    cells = cell_summaries(FEW, HERE[where](tmp_path))
    assert {cell: parts["ever"].n for cell, parts in cells.items()} == {("north",): 15, ("south",): 15}


@pytest.mark.parametrize("nothing", [[], iter(()), EXPORTED.slice(0, 0)])
def test_summary_of_no_reports_is_rejected(nothing, tmp_path):
    """An iterator that was read before is empty, which looked like a study without answers."""
    with raises(InputError, "reports.none"):
        summarize(FEW, nothing)
    (tmp_path / "empty.ndjson").touch()
    with raises(InputError, "reports.none"):
        summarize(FEW, tmp_path / "empty.ndjson")
    none = Summary.empty(FEW)
    assert summarize(FEW, none) is none


@pytest.mark.parametrize("form", [lambda rows: rows, pd.DataFrame])
def test_reports_on_other_versions_are_left_out_and_reported(form, capsys):
    other = Study({**FEW.document, "version": 2})
    mixed = [*DOCUMENTS, *(one.to_document() for one in made(other, 3))]
    assert summarize(FEW, form(mixed)).to_json() == RIGHT.to_json()
    said = "3 reports answer other versions of the study (version 2) and were left out"
    assert said in capsys.readouterr().err
    with raises(InputError, "reports.none_of_study"):
        summarize(FEW, form(mixed[-3:]))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (pd.DataFrame(DOCUMENTS).drop(columns="digest"), "reports.table_column_missing"),
        (pyarrow.table({"ever": [True]}), ("reports.table_column_missing", "Answers get their noise first")),
        ([*DOCUMENTS, {"ever": True}], ("reports.row_without_payloads", "entry 31")),
        ([*LINES[:-1], end_line(30)], ("reports.wrong_end_of_export", "29", "30")),
        (
            [*DOCUMENTS, {**DOCUMENTS[0], "payloads": DOCUMENTS[1]["payloads"] | {"occupation": "AA=="}}],
            ("reports.many_refused", "31"),
        ),
        ([{**DOCUMENTS[0], "payloads": {"ever": 3}}], ("reports.many_refused", "payloads.ever")),
        ([{**DOCUMENTS[0], "public": {"region": "east"}}], ("reports.many_refused", "public.region")),
        # A column filled in by hand: either field may be the wrong one.
        (
            pd.DataFrame({**row, "version": 7} for row in ROWS),
            ("reports.many_refused", "version 1, and no other"),
        ),
        (pd.DataFrame({**row, "study": "a"} for row in ROWS), ("reports.many_refused", "survey, version 1")),
        ([1.0, 2.0], "reports.row_wrong_type"),
        (REPORTS[0], ("reports.unknown_kind", "Report")),
        (None, ("reports.unknown_kind", "NoneType")),
        ("a path", "files.not_readable"),
        # The operating system's error message contained all reports.
        ("".join(LINES), "reports.text_not_path"),
        ('{"format": "ldpkit.report/1"}', "reports.text_not_path"),
        ([pd.DataFrame(ROWS), pd.DataFrame(ROWS)], "reports.row_wrong_type"),
    ],
)
def test_invalid_reports_are_rejected_with_their_place(wrong, said):
    with raises(InputError, said) as refused:
        summarize(FEW, wrong)
    assert "\n" not in str(refused.value)
    assert LINES[0].strip() not in str(refused.value)
