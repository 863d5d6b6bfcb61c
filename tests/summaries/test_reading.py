"""Reports are read the same wherever they are, counted once, and no damaged or foreign one goes unnoticed."""

import gzip
import hashlib
import io
import json
import tracemalloc

import pandas as pd
import pyarrow
import pytest

from ldp_client.documents.errors import InputError, ReportError
from ldp_client.documents.report import MAX_BYTES
from ldpkit.cli.exporting import whole_export
from schemas import Report, Study
from schemas.export_end import FORMAT, end_line
from summaries import Summary, cell_summaries, summarize
from summaries.findings import MOST_DOCUMENTS
from summaries.reading import evidence_of
from summaries.reducing import Seen
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reports_of, write_columns
from tests.summaries.engines_data import FEW, made, table, write

STUDY = Study(studies.document(studies.YES_NO))
REPORTS = reports_of(STUDY, [i % 3 == 0 for i in range(200)])
LINES = [report.to_json() + "\n" for report in REPORTS]
WHOLE = summarize(STUDY, REPORTS).to_json()


def written(path, *lines):
    path.write_text("".join(lines))
    return str(path)


def numbered(number, answer=0):
    report_id = hashlib.sha256(b"%d" % number).hexdigest()[:32]
    return Report(report_id, STUDY.id, STUDY.version, STUDY.digest, {"ever": bytes([answer])})


def test_repeated_reports_across_files_count_once(tmp_path, capsys):
    paths = [written(tmp_path / "a", *LINES[:120]), written(tmp_path / "b", *LINES[80:])]
    assert summarize(STUDY, paths).to_json() == WHOLE
    assert "40 reports were repeated" in capsys.readouterr().err


def test_ids_that_left_memory_still_count_once(monkeypatch):
    monkeypatch.setattr("summaries.reducing.CACHE_KIB", 16)
    seen = Seen()
    assert not any(seen.holds(numbered(number)) for number in range(5000))
    assert all(seen.holds(numbered(number)) for number in range(5000))
    with raises(ReportError, "report.duplicate_id"):
        seen.holds(numbered(3, 1))


def test_reports_read_for_another_study_are_rejected(tmp_path):
    other = Study(studies.document(studies.YES_NO, version=2))
    with raises(InputError, "reports.of_other_study"):
        summarize(other, evidence_of(STUDY, written(tmp_path / "reports.ndjson", *LINES)))


def test_damaged_parquet_is_rejected_or_gives_same_summary(tmp_path):
    """Pages have checksums, so no changed byte gives another report; parts of the footer are unused."""
    path = tmp_path / "r.parquet"
    write_columns(REPORTS[:20], path)
    whole, errors = path.read_bytes(), []
    same = summarize(STUDY, [str(path)]).to_json()
    for place in range(0, len(whole), 151):
        path.write_bytes(whole[:place] + b"a" + whole[place + 1 :])
        try:
            assert summarize(STUDY, [str(path)]).to_json() == same
        except InputError as error:
            errors.append(error.code)
    assert set(errors) == {"files.not_parquet"}
    assert len(errors) > len(whole) / 453


def test_impossible_reports_are_counted_and_shown(tmp_path):
    bad = [numbered(number, 9).to_json() + "\n" for number in range(7)]
    with raises(InputError, "reports.many_refused", "208", "line 201") as caught:
        summarize(STUDY, [written(tmp_path / "a", *LINES, *bad, "nonsense\n")])
    assert "\n" not in str(caught.value)


def peak_of(path):
    """How many bytes reading it took at most, and what it was refused with."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            summarize(STUDY, [str(path)])
        return tracemalloc.get_traced_memory()[1], str(caught.value)
    finally:
        tracemalloc.stop()


def foreign(number, digest="f" * 64):
    return json.dumps({**numbered(number).to_document(), "study": "other", "digest": digest}) + "\n"


@pytest.mark.attack(15)
@pytest.mark.parametrize("bad", [lambda _number: "nonsense\n", foreign], ids=["nonsense", "foreign"])
def test_refused_reports_are_counted_without_keeping_them(tmp_path, bad):
    """Send thousands of refused reports, so that keeping them fills the reader's memory."""
    path = tmp_path / "reports.ndjson"
    peaks = []
    # What the first time loads stays.
    for count in (100, 100, 1200):
        peak, said = peak_of(written(path, LINES[0], *map(bad, range(count))))
        peaks.append(peak)
    # A kept report would take more than a hundred bytes.
    assert peaks[2] - peaks[1] < 50_000
    assert said.startswith("1200 of 1201 reports cannot belong to this study: ")
    assert said.count("reports.ndjson, line") == 3


@pytest.mark.attack(15)
def test_reading_stops_after_1000_foreign_documents(tmp_path):
    """Name another study document in each report, so that counting them fills the reader's memory."""
    lines = [foreign(0, f"{number:064x}") for number in range(3 * MOST_DOCUMENTS)]
    _, said = peak_of(written(tmp_path / "reports.ndjson", *lines))
    assert f"line {MOST_DOCUMENTS + 1}: up to here reports answer more than 1000 study documents" in said


@pytest.mark.attack(15)
def test_endless_line_counts_as_one_invalid_report(tmp_path):
    """Send one line without an end."""
    peak, said = peak_of(written(tmp_path / "reports.ndjson", "x" * (9 * MAX_BYTES) + "\n", LINES[0]))
    assert peak < 6 * MAX_BYTES
    assert said.endswith(f"line 1: report: larger than {MAX_BYTES} bytes")


@pytest.mark.attack(19)
def test_label_that_looks_like_end_line_is_kept(tmp_path):
    """Give a public value a label that looks like an export's end line."""
    labels = [FORMAT, '{"format":"' + FORMAT + '"', end_line(0).strip()]
    study = Study(studies.document(studies.YES_NO, public=[{"id": "region", "choices": labels}]))
    reports = reports_of(study, [{"ever": True, "region": label} for label in labels])
    lines = [*(report.to_json() + "\n" for report in reports), end_line(3)]
    assert list(whole_export((line.encode() for line in lines), Report.from_json)) == reports
    assert summarize(study, [written(tmp_path / "reports.ndjson", *lines)]).questions["ever"].n == 3


@pytest.mark.attack(19)
@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ((*LINES[:90], end_line(200)), ("reports.wrong_end_of_export", "line 91: 90")),
        ((end_line(200),), ("reports.wrong_end_of_export", "line 1: 0")),
        (
            (*LINES[:90], end_line(90), *LINES[90:120], end_line(110)),
            ("reports.wrong_end_of_export", "line 122: 30"),
        ),
        ((*LINES, end_line(200)[:-10]), ("reports.wrong_end_of_export", "line 201: 200")),
    ],
)
def test_wrong_end_line_is_rejected(tmp_path, parts, line):
    """Cut an export off, or lose some of its lines, so that its end line counts others."""
    path = written(tmp_path / "r.ndjson", *parts)
    with raises(InputError, line):
        summarize(STUDY, [path])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("".join(LINES).encode("utf-16"), ("reports.not_ndjson", "UTF-16 text: save it as UTF-8")),
        (gzip.compress("".join(LINES).encode(), mtime=0), ("reports.not_ndjson", "compressed with gzip")),
        (b"report_id,study\n", ("reports.not_ndjson", "CSV")),
        (b"PAR1", ("reports.not_ndjson", "name that ends in .parquet")),
    ],
)
def test_files_of_other_formats_are_rejected(tmp_path, content, says):
    (tmp_path / "r.ndjson").write_bytes(content)
    with raises(InputError, says):
        summarize(STUDY, [str(tmp_path / "r.ndjson")])


FEW_REPORTS = made(FEW, 30)
FEW_SUMMARY = summarize(FEW, FEW_REPORTS)
FEW_LINES = [one.to_json() + "\n" for one in FEW_REPORTS]
DOCUMENTS = [one.to_document() for one in FEW_REPORTS]
EXPORTED = table(FEW_REPORTS)
ROWS = EXPORTED.to_pylist()


class Polars:
    """A table that only has Arrow's own interface, as Polars' and DuckDB's have."""

    __arrow_c_stream__ = EXPORTED.__arrow_c_stream__


def file_of(folder, text=None):
    path = folder / "reports.ndjson"
    path.write_text(text or "".join([*FEW_LINES, end_line(len(FEW_LINES))]))
    return path


HERE = {
    "lines": lambda _: FEW_LINES,
    "a file of bytes": lambda folder: io.BytesIO(file_of(folder).read_bytes()),
    "a path": file_of,
    "a file without an end line": lambda folder: file_of(folder, "".join(FEW_LINES)),
    "a file with a byte order mark": lambda folder: file_of(folder, "\ufeff" + "".join(FEW_LINES)),
    "joined exports": lambda folder: file_of(
        folder, "".join([*FEW_LINES[:9], end_line(9), end_line(0), *FEW_LINES[9:], end_line(21)])
    ),
    "a Parquet file": lambda folder: write(folder / "reports.parquet", FEW_REPORTS),
    "paths": lambda folder: [file_of(folder)],
    "documents": lambda _: iter(DOCUMENTS),
    "an export that pandas read": lambda folder: pd.read_json(file_of(folder), lines=True),
    "a frame of an export": lambda _: pd.DataFrame(ROWS),
    "an Arrow table": lambda _: EXPORTED,
    "a stream of Arrow batches": lambda _: EXPORTED.to_reader(max_chunksize=7),
    "Polars": lambda _: Polars(),
    "twice the same": lambda _: [*FEW_LINES, *FEW_LINES],
    "a summary's file": lambda folder: file_of(folder, FEW_SUMMARY.to_json()),
}


@pytest.mark.parametrize("where", HERE)
def test_summary_is_the_same_for_every_source_of_reports(where, tmp_path):
    assert summarize(FEW, HERE[where](tmp_path)).to_json() == FEW_SUMMARY.to_json()
    cells = cell_summaries(FEW, HERE[where](tmp_path))
    assert {cell: parts["ever"].n for cell, parts in cells.items()} == {("north",): 15, ("south",): 15}


@pytest.mark.parametrize("form", [list, pd.DataFrame])
def test_reports_on_other_versions_are_left_out_and_reported(form, capsys):
    other = Study({**FEW.document, "version": 2})
    mixed = [*DOCUMENTS, *(report.to_document() for report in made(other, 3))]
    assert summarize(FEW, form(mixed)).to_json() == FEW_SUMMARY.to_json()
    said = "3 reports answer other versions of the study (version 2) and were left out"
    assert said in capsys.readouterr().err
    with raises(InputError, "reports.none_of_study"):
        summarize(FEW, form(mixed[-3:]))


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


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (pd.DataFrame(DOCUMENTS).drop(columns="digest"), "reports.table_column_missing"),
        (pyarrow.table({"ever": [True]}), ("reports.table_column_missing", "Answers get their noise first")),
        ([*DOCUMENTS, {"ever": True}], ("reports.row_without_payloads", "entry 31")),
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
        (FEW_REPORTS[0], ("reports.unknown_kind", "Report")),
        (None, ("reports.unknown_kind", "NoneType")),
        ("a path", "files.not_readable"),
        # The operating system's error message contained all reports.
        ("".join(FEW_LINES), "reports.text_not_path"),
        ('{"format": "ldpkit.report/1"}', "reports.text_not_path"),
        ([pd.DataFrame(ROWS), pd.DataFrame(ROWS)], "reports.row_wrong_type"),
    ],
)
def test_invalid_reports_are_rejected_with_their_place(wrong, said):
    with raises(InputError, said) as refused:
        summarize(FEW, wrong)
    assert "\n" not in str(refused.value)
    assert FEW_LINES[0].strip() not in str(refused.value)
