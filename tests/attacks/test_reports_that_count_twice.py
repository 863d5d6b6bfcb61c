"""Tries to have reports count twice, or an export that was cut off, or is no text, count as a whole one.

Defence: `fit` and `summarize`, from files and in Python. Known limit: summaries have no ids, and what is in
two of them counts twice; a file without an end line may lack its tail.
"""

from __future__ import annotations

import gzip

import pytest

from collector.remote.download import _whole_export
from collector.remote.writing import write_reports
from inference import fit, summarize
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError, ReportError
from ldpkit.cli import main
from schemas import Report, Study
from schemas.export_end import FORMAT, end_line
from summaries.reading import load_evidence, load_summary, summarize_files
from tests import studies
from tests.kit.errors import raises

STUDY = Study(studies.document(studies.YES_NO))
MECHANISMS = {question.id: mechanism_for(question) for question in STUDY.questions}
REPORTS = [perturb_answers(STUDY, MECHANISMS, {"ever": i % 3 == 0}) for i in range(200)]
LINES = [report.to_json() + "\n" for report in REPORTS]
WHOLE = summarize(STUDY, REPORTS).to_json()


def write(path, *parts):
    path.write_text("".join(parts))
    return str(path)


@pytest.mark.slow
def test_repeated_reports_are_counted_once(capsys):
    assert summarize(STUDY, REPORTS + REPORTS).to_json() == WHOLE
    assert "200 reports were repeated and counted once" in capsys.readouterr().err
    assert fit(STUDY, iter(REPORTS + REPORTS), method="gaussian_approx")["ever"].n == 200


def test_id_with_two_contents_is_rejected():
    first = REPORTS[0]
    other = Report(first.id, first.study, 1, first.digest, {"ever": bytes([1 - first.payloads["ever"][0]])})
    for job in (summarize, fit):
        with raises(ReportError, "report.duplicate_id"):
            job(STUDY, [*REPORTS, other])


def test_label_that_looks_like_end_line_is_kept(tmp_path):
    labels = [FORMAT, '{"format":"' + FORMAT + '"', end_line(0).strip()]
    study = Study(studies.document(studies.YES_NO, public=[{"id": "region", "choices": labels}]))
    mechanisms = {question.id: mechanism_for(question) for question in study.questions}
    reports = [perturb_answers(study, mechanisms, {"ever": True, "region": label}) for label in labels]
    lines = [*(report.to_json() + "\n" for report in reports), end_line(3)]
    assert list(_whole_export((line.encode() for line in lines), Report.from_json)) == reports
    assert summarize_files(study, [write(tmp_path / "reports.ndjson", *lines)]).questions["ever"].n == 3


@pytest.mark.parametrize("wrong", [None, "x", 7])
def test_malformed_report_id_is_rejected(wrong):
    with raises(ReportError, "report.wrong_id"):
        summarize(STUDY, [Report(wrong, "survey", 1, STUDY.digest, REPORTS[0].payloads)])


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ((*LINES[:90], end_line(200)), ("reports.wrong_end_of_export", "line 91: 90")),
        ((*LINES[:1], end_line(200)), ("reports.wrong_end_of_export", "line 2: 1")),
        ((end_line(200),), ("reports.wrong_end_of_export", "line 1: 0")),
        (
            (*LINES[:90], end_line(90), *LINES[90:120], end_line(110)),
            ("reports.wrong_end_of_export", "line 122: 30"),
        ),
        ((*LINES, end_line(90)), ("reports.wrong_end_of_export", "line 201: 200")),
        ((*LINES, end_line(200)[:-10]), ("reports.wrong_end_of_export", "line 201: 200")),
    ],
)
def test_wrong_end_line_is_rejected(tmp_path, parts, line):
    path = write(tmp_path / "r.ndjson", *parts)
    for job in (lambda: summarize_files(STUDY, [path]), lambda: fit(STUDY, load_evidence(STUDY, path))):
        with raises(InputError, line):
            job()


def test_export_with_lost_lines_is_rejected(tmp_path):
    """Lines get lost on a full disk, in an editor or in a pipe."""
    path = tmp_path / "reports.ndjson"
    assert write_reports(REPORTS, path) == 200
    assert summarize_files(STUDY, [str(path)]).to_json() == WHOLE
    lines = path.read_text().splitlines(keepends=True)
    with raises(InputError, "reports.wrong_end_of_export", "line 151: 150"):
        summarize_files(STUDY, [write(path, *lines[:90], *lines[140:])])


def test_joined_exports_are_read_whole(tmp_path):
    """Joined exports stay readable, also with an empty one among them, and without any end line."""
    joined = (*LINES[:90], end_line(90), end_line(0), *LINES[90:], end_line(110))
    assert summarize_files(STUDY, [write(tmp_path / "a", *joined)]).to_json() == WHOLE
    assert summarize_files(STUDY, [write(tmp_path / "b", *LINES)]).to_json() == WHOLE


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("".join(LINES).encode("utf-16"), ("reports.not_ndjson", "UTF-16 text: save it as UTF-8")),
        (gzip.compress("".join(LINES).encode()), ("reports.not_ndjson", "compressed with gzip")),
        (b"PAR1", ("reports.not_ndjson", "name that ends in .parquet")),
        (b"", "reports.none_in_files"),
    ],
)
def test_files_of_other_formats_are_rejected(tmp_path, content, says):
    (tmp_path / "r.ndjson").write_bytes(content)
    (tmp_path / "study.json").write_text(STUDY.to_json())
    with raises(InputError, says):
        summarize_files(STUDY, [str(tmp_path / "r.ndjson")])
    command = ["summarize", str(tmp_path / "study.json"), str(tmp_path / "r.ndjson")]
    assert main([*command, "--out", str(tmp_path / "s.json")]) == 3
    assert not (tmp_path / "s.json").exists()


def test_byte_order_mark_is_ignored(tmp_path):
    for name, text in (("r.ndjson", "".join(LINES)), ("s.json", WHOLE)):
        (tmp_path / name).write_text(text, encoding="utf-8-sig")
        assert load_summary(STUDY, str(tmp_path / name)).to_json() == WHOLE


def test_parquet_suffix_in_capitals_is_recognised(tmp_path):
    write_reports(REPORTS, tmp_path / "r.PARQUET")
    assert (tmp_path / "r.PARQUET").read_bytes().startswith(b"PAR1")
    assert load_summary(STUDY, str(tmp_path / "r.PARQUET")).to_json() == WHOLE


def test_fit_notes_reports_of_other_versions(tmp_path):
    newer = Study(studies.document(studies.YES_NO, version=2))
    late = perturb_answers(newer, MECHANISMS, {"ever": True})
    evidence = load_evidence(STUDY, write(tmp_path / "r", *LINES, late.to_json() + "\n"))
    notes = fit(STUDY, evidence, method="gaussian_approx")["ever"].diagnostics.notes
    assert any("1 report answers other versions" in note for note in notes)
