"""Each report of a file is checked once, however it is read, and each mechanism built once in a fit."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import tracemalloc
from collections import Counter

import pytest

from inference import fit
from ldp_client import mechanism_for, mechanisms_of
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError, ReportError
from ldp_client.mechanisms import MECHANISMS
from ldpkit.cli import main
from schemas import Report, Study
from summaries import summarize
from summaries.reading import load_evidence, load_summary, summarize_files
from summaries.reducing import Seen
from tests import studies
from tests.kit.errors import raises

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


@pytest.mark.slow
@pytest.mark.parametrize(
    "read",
    [
        lambda path: summarize_files(STUDY, [path]),
        lambda path: load_summary(STUDY, path),
        lambda path: fit(STUDY, load_evidence(STUDY, path), method="gaussian_approx"),
        lambda _path: summarize(STUDY, REPORTS),
    ],
)
def test_each_report_is_checked_once(path, checked, read):
    read(path)
    assert checked == [report.payloads["ever"] for report in REPORTS]


def test_reports_checked_for_another_study_are_rejected(path):
    with raises(ReportError, "report.other_study"):
        fit(OTHER, load_evidence(STUDY, path), method="gaussian_approx")


def test_file_of_another_study_is_rejected(path):
    with raises(InputError, "reports.none_of_study"):
        summarize_files(OTHER, [path])


@pytest.mark.slow
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
    assert main(["fit", *paths[:2], "--out", paths[2], "--method", "gaussian_approx"]) in (0, 4)
    assert (tmp_path / "out" / "report.html").exists()
    assert built == dict.fromkeys(mechanisms, 1)


def numbered(number: int, answer: int = 0) -> Report:
    return Report(
        hashlib.sha256(b"%d" % number).hexdigest()[:32], "survey", 1, STUDY.digest, {"ever": bytes([answer])}
    )


@pytest.mark.parametrize("bits", [2, 20])
def test_ids_that_left_memory_still_count_once(bits, monkeypatch):
    """Also if the small filter takes every id for a known one."""
    monkeypatch.setattr("summaries.reducing.FILTER_BITS", bits + 3)
    seen = Seen(most=10)
    assert not any(seen.holds(numbered(number)) for number in range(95))
    assert len(seen._newest) == 5
    assert all(seen.holds(numbered(number)) for number in range(95))
    assert seen.repeated == 95
    with raises(ReportError, "report.duplicate_id"):
        seen.holds(numbered(3, 1))


def test_memory_does_not_grow_with_the_reports(monkeypatch):
    def grown(count: int) -> int:
        seen = Seen(most=500)
        tracemalloc.start()
        for number in range(count):
            seen.holds(numbered(number))
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return size

    monkeypatch.setattr("summaries.reducing.FILTER_BITS", 13)
    # In memory 9,000 more ids would take 1.3 MB, twenty times as much as all.
    assert grown(10_400) < 2 * grown(1_400)


def test_full_temporary_folder_is_reported(monkeypatch):
    seen = Seen(most=2)
    assert not any(seen.holds(numbered(number)) for number in range(3))
    monkeypatch.setattr(seen, "_others", None)
    monkeypatch.setattr("summaries.reducing.sqlite3.connect", full)
    with raises(InputError, "reports.no_room_for_ids"):
        seen.holds(numbered(3))


def full(*_arguments, **_options):
    raise sqlite3.OperationalError("database or disk is full")
