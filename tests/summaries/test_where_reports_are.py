"""Reports are read the same wherever they are: files, lines, documents, pandas, Polars, Arrow."""

from __future__ import annotations

import csv
import io
import json
from contextlib import redirect_stderr

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

import ldpkit
from collector.remote.writing import write_reports
from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError, ReportError
from ldpkit.cli import main
from schemas import Study
from schemas.export_end import end_line
from summaries import Summary, cell_summaries, summarize
from tests import studies
from tests.kit.errors import raises

REGION = {"id": "region", "choices": ["north", "south"]}
QUESTIONS = (studies.YES_NO, studies.CHOICE)
STUDY = Study(studies.document(*QUESTIONS, public=[REGION]))
OTHER = Study(studies.document(*QUESTIONS, public=[REGION], version=2))


def made(study, count):
    random = NotForRealAnswers(np.random.default_rng(study.version).bytes)
    return [
        perturb_answers(
            study,
            mechanisms_of(study),
            {"ever": n % 2 == 0, "occupation": "worker", "region": REGION["choices"][n % 2]},
            random,
        )
        for n in range(count)
    ]


REPORTS = made(STUDY, 30)
RIGHT = summarize(STUDY, REPORTS)
LINES = [one.to_json() + "\n" for one in REPORTS]
DOCUMENTS = [one.to_document() for one in REPORTS]
# As `ldpkit export` writes Parquet.
ROWS = [
    {
        "report_id": one.id,
        "study": one.study,
        "version": one.version,
        "digest": one.digest,
        "payloads": one.payloads,
        "public": one.public,
    }
    for one in REPORTS
]


class Polars:
    """A table that only has Arrow's own interface, as Polars' and DuckDB's have."""

    def __init__(self, rows):
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema=None):
        return pyarrow.Table.from_pylist(self.rows).__arrow_c_stream__(requested_schema)


def file_of(folder, text=None):
    path = folder / "reports.ndjson"
    path.write_text(text or "".join([*LINES, end_line(len(LINES))]))
    return path


def in_csv(folder):
    (folder / "reports.csv").unlink(missing_ok=True)
    write_reports(REPORTS, folder / "reports.csv")
    return folder / "reports.csv"


HERE = {
    "lines": lambda _: LINES,
    "an open file": lambda folder: file_of(folder).open(),
    "a file of bytes": lambda folder: io.BytesIO(file_of(folder).read_bytes()),
    "a path": file_of,
    "a path as text": lambda folder: str(file_of(folder)),
    "paths": lambda folder: [file_of(folder)],
    "documents": lambda _: iter(DOCUMENTS),
    "documents in pandas": lambda _: pd.DataFrame(DOCUMENTS),
    # The end of an export makes numbers floats, and leaves all else missing.
    "an export that pandas read": lambda folder: pd.read_json(file_of(folder), lines=True),
    "a file of CSV": in_csv,
    "a file of CSV that pandas read": lambda folder: pd.read_csv(in_csv(folder)),
    "a file of CSV that pandas read as text": lambda folder: pd.read_csv(in_csv(folder), dtype=str),
    "rows that Python's csv read": lambda folder: list(csv.DictReader(in_csv(folder).open(newline=""))),
    "a column of documents in pandas": lambda _: pd.Series(DOCUMENTS),
    "a column of lines in pandas": lambda _: pd.Series(LINES),
    "a frame of an export": lambda _: pd.DataFrame(ROWS),
    "an Arrow table": lambda _: pyarrow.Table.from_pylist(ROWS),
    "an Arrow batch": lambda _: pyarrow.RecordBatch.from_pylist(ROWS),
    # As DuckDB's .arrow() gives them: read once, they are used up.
    "a stream of Arrow batches": lambda _: pyarrow.Table.from_pylist(ROWS).to_reader(max_chunksize=7),
    "documents in Arrow": lambda _: pyarrow.Table.from_pylist(DOCUMENTS),
    "Polars": lambda _: Polars(ROWS),
    "twice the same": lambda _: [*LINES, *LINES],
    "a summary's file": lambda folder: file_of(folder, RIGHT.to_json()),
}


@pytest.mark.parametrize("where", HERE)
def test_summary_is_the_same_for_every_source_of_reports(where, tmp_path):
    assert summarize(STUDY, HERE[where](tmp_path)).to_json() == RIGHT.to_json()
    cells = cell_summaries(STUDY, HERE[where](tmp_path))
    assert {cell: parts["ever"].n for cell, parts in cells.items()} == {("north",): 15, ("south",): 15}


@pytest.mark.parametrize(
    "nothing", [[], iter(()), pyarrow.Table.from_pylist(ROWS[:0], pyarrow.Table.from_pylist(ROWS).schema)]
)
def test_summary_of_no_reports_is_rejected(nothing, tmp_path):
    """An iterator that was read before is empty, which looked like a study without answers."""
    with raises(InputError, "reports.none_in_series"):
        summarize(STUDY, nothing)
    (tmp_path / "empty.ndjson").touch()
    with raises(InputError, "reports.none_in_series"):
        summarize(STUDY, tmp_path / "empty.ndjson")
    none = Summary.empty(STUDY)
    assert summarize(STUDY, none) is none


def test_error_for_folder_or_address_advises_summarize(tmp_path, capsys):
    """Before, the error was only that it is a directory."""
    (tmp_path / "study.json").write_text(STUDY.to_json())
    reports = file_of(tmp_path, "".join(LINES))
    (tmp_path / "study_id=habits").mkdir()
    for place in (str(tmp_path), "s3://bucket/exports", "https://host/r.ndjson?day=1", "file:///data/r.csv"):
        told = f"{place} is no file: name a file of reports, or first reduce a dataset by `ldpkit summarize"
        for job in (lambda: ldpkit.fit(STUDY, place), lambda: summarize(STUDY, [reports, place])):  # noqa: B023
            with raises(InputError, "reports.not_a_file", told):
                job()
        for command in (["fit", "STUDY", place], ["summarize", "STUDY", place, str(reports)]):
            given = [str(tmp_path / "study.json") if one == "STUDY" else one for one in command]
            assert main([*given, "--out", str(tmp_path / "out")]) == 3
            assert told in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"version": 7}, {"study": "other"}])
def test_digest_of_another_version_or_study_is_rejected(change):
    """Such as a column filled in by hand: either field may be the wrong one."""
    rows = [{**row, **change} for row in ROWS]
    with raises(InputError, "reports.many_refused", "survey, version 1, and no other"):
        summarize(STUDY, pd.DataFrame(rows))
    with raises(InputError, "reports.entry_not_report"):
        summarize(STUDY, pd.Series([1.0, 2.0]))


def test_studies_are_read_from_their_files(tmp_path):
    (tmp_path / "study.json").write_text(STUDY.to_json())
    assert ldpkit.summarize(tmp_path / "study.json", LINES).to_json() == RIGHT.to_json()
    (tmp_path / "study.json").write_text("{}")
    with raises(InputError, "study.invalid", str(tmp_path / "study.json"), "format"):
        ldpkit.summarize(str(tmp_path / "study.json"), LINES)


@pytest.mark.parametrize("form", [lambda rows: rows, pd.DataFrame])
def test_reports_on_other_versions_are_left_out_and_reported(form):
    mixed = [*DOCUMENTS, *(one.to_document() for one in made(OTHER, 3))]
    with redirect_stderr(io.StringIO()) as said:
        assert summarize(STUDY, form(mixed)).to_json() == RIGHT.to_json()
    assert "3 reports answer other versions of the study (version 2) and were left out" in said.getvalue()
    with raises(InputError, "reports.none_of_study"):
        summarize(STUDY, form(mixed[-3:]))
    # Who has Report objects has read them already, and meant these.
    with raises(ReportError, "report.other_study"):
        summarize(STUDY, [*REPORTS, *made(OTHER, 1)])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (pd.DataFrame(DOCUMENTS).drop(columns="digest"), "reports.table_column_missing"),
        (pd.DataFrame(ROWS).drop(columns="report_id"), ("reports.many_refused", "lacks")),
        (pyarrow.table({"ever": [True]}), ("reports.table_column_missing", "Answers get their noise first")),
        ([*DOCUMENTS, {"ever": True}], ("reports.row_without_payloads", "entry 31")),
        ([*LINES, json.dumps({"ever": True})], ("reports.many_refused", "entry 31")),
        ([*LINES[:-1], end_line(30)], ("reports.wrong_end_of_export", "29", "30")),
        ([*DOCUMENTS[:-1], json.loads(end_line(30))], ("reports.wrong_end_of_export", "29", "30")),
        (
            [*DOCUMENTS, {**DOCUMENTS[0], "payloads": DOCUMENTS[1]["payloads"] | {"occupation": "AA=="}}],
            ("reports.many_refused", "31"),
        ),
        ([{**DOCUMENTS[0], "payloads": {"ever": 3}}], ("reports.many_refused", "payloads.ever")),
        (REPORTS[0], ("reports.unknown_kind", "Report")),
        ([pd.DataFrame(ROWS), pd.DataFrame(ROWS)], "reports.several_tables"),
        ([DOCUMENTS], ("reports.entry_not_report", "a series of Report, or a Summary", "1")),
    ],
)
def test_invalid_reports_are_rejected_with_their_place(wrong, said):
    with raises(InputError, said):
        summarize(STUDY, wrong)


def test_summary_among_report_files_is_rejected_by_name(tmp_path):
    path = tmp_path / "a.summary.json"
    path.write_text(RIGHT.to_json())
    reports = file_of(tmp_path, "\n".join(LINES))
    for several in ([path, path], [reports, path]):
        with raises(InputError, "reports.is_summary", "a.summary.json"):
            summarize(STUDY, several)


@pytest.mark.parametrize("label", ["ldpkit.summary/1", '"format":"ldpkit.summary/1"'])
def test_reports_with_summary_like_label_are_read(label, tmp_path):
    public = [{"id": "region", "choices": [label, "south"]}]
    study = Study(studies.document(studies.YES_NO, public=public))
    mechanisms = mechanisms_of(study)
    made = [perturb_answers(study, mechanisms, {"ever": True, "region": label}) for _ in range(3)]
    paths = [tmp_path / f"{place}.ndjson" for place in range(3)]
    for path, report in zip(paths, made, strict=True):
        path.write_text(f"{report.to_json()}\n{end_line(1)}")
    assert summarize(study, paths).questions["ever"].n == 3
    assert summarize(study, paths[0]).questions["ever"].n == 1


def test_cut_off_or_reformatted_summary_is_rejected(tmp_path):
    reports, whole = file_of(tmp_path), RIGHT.to_json()
    path = tmp_path / "a.json"
    for text in (whole[: len(whole) // 2], json.dumps(json.loads(whole), indent=2)):
        path.write_text(text)
        with raises(InputError, "reports.is_summary", "a.json"):
            summarize(STUDY, [reports, path])
