"""Each report of a file is checked once, however it is read, and each mechanism built once in a fit."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from inference import fit
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError, ReportError
from schemas import Report, Study
from summaries import summarize
from summaries.reading import evidence_of
from summaries.reducing import Seen
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reports_of

STUDY = Study(studies.document(studies.YES_NO))
OTHER = Study(studies.document(studies.YES_NO, version=2))
MECHANISM = mechanism_for(STUDY.questions[0])
REPORTS = reports_of(STUDY, [number % 3 == 0 for number in range(40)])


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
        lambda path: summarize(STUDY, path),
        lambda path: fit(STUDY, evidence_of(STUDY, path), method="gaussian_approx"),
    ],
)
def test_each_report_is_checked_once(path, checked, read):
    read(path)
    assert checked == [report.payloads["ever"] for report in REPORTS]


def test_reports_checked_for_another_study_are_rejected(path):
    with raises(InputError, "reports.of_other_study"):
        fit(OTHER, evidence_of(STUDY, path), method="gaussian_approx")


def numbered(number: int, answer: int = 0) -> Report:
    return Report(
        hashlib.sha256(b"%d" % number).hexdigest()[:32], "survey", 1, STUDY.digest, {"ever": bytes([answer])}
    )


def test_ids_that_left_memory_still_count_once(monkeypatch):
    monkeypatch.setattr("summaries.reducing.CACHE_KIB", 16)
    seen = Seen()
    assert not any(seen.holds(numbered(number)) for number in range(5000))
    assert all(seen.holds(numbered(number)) for number in range(5000))
    with raises(ReportError, "report.duplicate_id"):
        seen.holds(numbered(3, 1))


def resident_bytes() -> int:
    """Return the memory that this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_memory_does_not_grow_with_the_ids(monkeypatch):
    """Without a bound, 300,000 ids would take 9 MB or more."""
    monkeypatch.setattr("summaries.reducing.CACHE_KIB", 512)
    seen, ids = Seen(), np.random.default_rng(0).bytes(16 * 300_000)
    before = 0
    for number, place in enumerate(range(0, len(ids), 16)):
        before = resident_bytes() if number == 10_000 else before
        assert not seen.holds(SimpleNamespace(id=ids[place : place + 16].hex(), payloads={}, public={}))
    assert resident_bytes() - before < 6 << 20
