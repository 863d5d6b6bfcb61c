"""Each report of a file is checked once, however it is read."""

from __future__ import annotations

import pytest

from inference import fit
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError, ReportError
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
