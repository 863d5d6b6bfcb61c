"""Each report of a file is checked once, however it is read, and each mechanism built once in a fit."""

from __future__ import annotations

import hashlib
import tracemalloc

import pytest

from inference import fit
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import ReportError
from schemas import Report, Study
from summaries.reading import load_evidence, load_summary
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
        lambda path: load_summary(STUDY, path),
        lambda path: fit(STUDY, load_evidence(STUDY, path), method="gaussian_approx"),
    ],
)
def test_each_report_is_checked_once(path, checked, read):
    read(path)
    assert checked == [report.payloads["ever"] for report in REPORTS]


def test_reports_checked_for_another_study_are_rejected(path):
    with raises(ReportError, "report.other_study"):
        fit(OTHER, load_evidence(STUDY, path), method="gaussian_approx")


def numbered(number: int, answer: int = 0) -> Report:
    return Report(
        hashlib.sha256(b"%d" % number).hexdigest()[:32], "survey", 1, STUDY.digest, {"ever": bytes([answer])}
    )


@pytest.mark.parametrize("bits", [2])
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
