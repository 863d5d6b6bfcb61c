"""Each report of a file is checked once, however it is read, and each mechanism built once in a fit."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from inference import fit
from ldp_client import mechanism_for, mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.cli import main
from ldp_client.documents.errors import InputError, ReportError
from ldp_client.mechanisms import MECHANISMS
from schemas import Study
from summaries import summarize
from summaries.reading import load_evidence, load_summary, summarize_files
from tests import studies

STUDY = Study(studies.document(studies.YES_NO))
OTHER = Study(studies.document(studies.YES_NO, version=2))
MECHANISM = mechanism_for(STUDY.questions[0])
REPORTS = [perturb_answers(STUDY, {"ever": MECHANISM}, {"ever": number % 3 == 0}) for number in range(40)]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "reports.ndjson"
    file.write_text("".join(report.to_json() + "\n" for report in REPORTS))
    return str(file)


@pytest.fixture
def checked(monkeypatch):
    """The payloads that were checked, in turn."""
    found = []
    check = type(MECHANISM).check

    def recording(self, payload):
        found.append(payload)
        check(self, payload)

    monkeypatch.setattr(type(MECHANISM), "check", recording)
    return found


@pytest.mark.parametrize(
    "read",
    [
        lambda path: summarize_files(STUDY, [path]),
        lambda path: load_summary(STUDY, path),
        lambda path: fit(STUDY, load_evidence(STUDY, path), method="laplace"),
        lambda _path: summarize(STUDY, REPORTS),
    ],
)
def test_each_report_is_checked_once(path, checked, read):
    read(path)
    assert checked == [report.payloads["ever"] for report in REPORTS]


def test_reports_that_were_checked_for_another_study_are_checked_for_this_one(path):
    with pytest.raises(ReportError, match="another study document"):
        fit(OTHER, load_evidence(STUDY, path), method="laplace")


def test_what_a_file_has_of_another_study_is_still_refused(path):
    with pytest.raises(InputError, match="answer"):
        summarize_files(OTHER, [path])


@pytest.mark.parametrize(
    ("document", "rows", "summarized"),
    [
        (
            studies.document(studies.YES_NO, studies.NEWER[1]),
            {"ever": True, "sue": 7},
            False,
        ),
        (studies.document(studies.YES_NO), studies.ANSWERS, True),
        (studies.document(studies.TABLE, **studies.HOLDER), {"power": studies.ROWS}, False),
    ],
    ids=["reports", "a summary", "tables"],
)
def test_a_whole_fit_builds_each_mechanism_once(document, rows, summarized, tmp_path, monkeypatch):
    study = Study(document)
    mechanisms = mechanisms_of(study)
    answers = {name: rows[name] for name in mechanisms}
    reports = [perturb_answers(study, mechanisms, answers) for _ in range(30)]
    lines = "".join(report.to_json() + "\n" for report in reports)
    evidence = {"study.json": json.dumps(document), "evidence": lines}
    if summarized:
        evidence["evidence"] = summarize(study, reports).to_json()
    for name, text in evidence.items():
        (tmp_path / name).write_text(text)

    built = Counter()
    for name in {question.mechanism.name for question in study.questions}:
        build = MECHANISMS[name]
        counted = lambda question, build=build: built.update([question.id]) or build(question)  # noqa: E731
        monkeypatch.setitem(MECHANISMS, name, counted)
    monkeypatch.setattr("ldp_client.mechanisms._built", {})
    paths = [str(tmp_path / name) for name in ("study.json", "evidence", "out")]
    assert main(["fit", *paths[:2], "--out", paths[2], "--method", "laplace"]) in (0, 4)
    assert (tmp_path / "out" / "report.html").exists()
    assert built == dict.fromkeys(mechanisms, 1)
