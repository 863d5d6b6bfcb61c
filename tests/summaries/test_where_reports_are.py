"""Reports are read the same wherever they are: files, lines, documents, pandas, Polars, Arrow."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from pyarrow import csv as arrow_csv

from ldp_client import mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError, ReportError
from ldpkit.cli.report_files import write_reports
from schemas import Report, Study
from schemas.export_end import end_line
from summaries import Summary, cell_summaries, summarize
from summaries.reading import evidence_of
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
    "a file of bytes": lambda folder: io.BytesIO(file_of(folder).read_bytes()),
    "a path": file_of,
    "paths": lambda folder: [file_of(folder)],
    "documents": lambda _: iter(DOCUMENTS),
    "an export that pandas read": lambda folder: pd.read_json(file_of(folder), lines=True),
    "a file of CSV": in_csv,
    "a file of CSV that pandas read": lambda folder: pd.read_csv(in_csv(folder)),
    "a frame of an export": lambda _: pd.DataFrame(ROWS),
    "an Arrow table": lambda _: pyarrow.Table.from_pylist(ROWS),
    "a stream of Arrow batches": lambda _: pyarrow.Table.from_pylist(ROWS).to_reader(max_chunksize=7),
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
    with raises(InputError, "reports.none"):
        summarize(STUDY, nothing)
    (tmp_path / "empty.ndjson").touch()
    with raises(InputError, "reports.none"):
        summarize(STUDY, tmp_path / "empty.ndjson")
    none = Summary.empty(STUDY)
    assert summarize(STUDY, none) is none


@pytest.mark.parametrize("change", [{"version": 7}, {"study": "other"}])
def test_digest_of_another_version_or_study_is_rejected(change):
    """Such as a column filled in by hand: either field may be the wrong one."""
    rows = [{**row, **change} for row in ROWS]
    with raises(InputError, "reports.many_refused", "survey, version 1, and no other"):
        summarize(STUDY, pd.DataFrame(rows))
    with raises(InputError, "reports.entry_not_report"):
        summarize(STUDY, [1.0, 2.0])


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
        (pyarrow.table({"ever": [True]}), ("reports.table_column_missing", "Answers get their noise first")),
        ([*DOCUMENTS, {"ever": True}], ("reports.row_without_payloads", "entry 31")),
        ([*LINES[:-1], end_line(30)], ("reports.wrong_end_of_export", "29", "30")),
        (
            [*DOCUMENTS, {**DOCUMENTS[0], "payloads": DOCUMENTS[1]["payloads"] | {"occupation": "AA=="}}],
            ("reports.many_refused", "31"),
        ),
        ([{**DOCUMENTS[0], "payloads": {"ever": 3}}], ("reports.many_refused", "payloads.ever")),
        (REPORTS[0], ("reports.unknown_kind", "Report")),
        ([pd.DataFrame(ROWS), pd.DataFrame(ROWS)], "reports.entry_not_report"),
    ],
)
def test_invalid_reports_are_rejected_with_their_place(wrong, said):
    with raises(InputError, said):
        summarize(STUDY, wrong)


READERS = {
    "pandas": pd.read_csv,
    "pyarrow": arrow_csv.read_csv,
    "dictionaries": lambda path: pd.read_csv(path).to_dict("records"),
}


def exported(folder: Path, labels: list[str]) -> tuple[Study, str]:
    """A report of the first label, two of the second, and so on."""
    study = Study(studies.document(studies.YES_NO, public=[{"id": "release", "choices": labels}]))
    head = (study.id, study.version, study.digest, {"ever": b"\x01"})
    some = [label for place, label in enumerate(labels, 1) for _ in range(place)]
    reports = [Report(f"{place:031x}a", *head, public={"release": one}) for place, one in enumerate(some)]
    path = folder / "reports.csv"
    write_reports(reports, path)
    return study, str(path)


def counts(study: Study, given: object) -> list[int]:
    """How many reports each label has, 0 for none."""
    found = cell_summaries(study, given)  # type: ignore[arg-type]
    return [found[label,]["ever"].n if (label,) in found else 0 for label in study.public[0].choices]


LABELS = [["1.1", "1.2", "1.10"], ["01", "1"]]


@pytest.mark.attack(19)
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("labels", LABELS)
def test_labels_that_are_not_text_are_refused(labels: list[str], reader: str, tmp_path: Path) -> None:
    """Label two groups 1.1 and 1.10, which readers of a CSV file take for one number."""
    study, path = exported(tmp_path, labels)
    assert counts(study, path) == list(range(1, len(labels) + 1))
    with raises(InputError, "reports.many_refused", "public.release", "dtype=str"):
        counts(study, READERS[reader](path))
    assert counts(study, pd.read_csv(path, dtype=str)) == list(range(1, len(labels) + 1))


@pytest.mark.attack(19)
@pytest.mark.parametrize("label", ["NA"])
def test_labels_that_pandas_reads_as_missing_are_refused(label: str, tmp_path: Path) -> None:
    """Label a group NA, which pandas reads as a missing cell."""
    study, path = exported(tmp_path, [label, "DE"])
    with raises(InputError, "reports.many_refused", "public.release: is missing"):
        counts(study, pd.read_csv(path))
    assert counts(study, pd.read_csv(path, keep_default_na=False)) == [1, 2]


def test_file_content_given_as_path_is_refused(tmp_path: Path) -> None:
    """The operating system's error message contained all reports."""
    study, path = exported(tmp_path, ["a", "b"])
    text = Path(path).read_text()
    for given in (text, '{"format": "ldpkit.report/1"}'):
        with raises(InputError, "reports.text_not_path") as told:
            evidence_of(study, given)
        assert text not in str(told.value)
