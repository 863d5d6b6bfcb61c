"""Edits the document that a study was built from, so that a device answers another than it digests.

Defence: `Study`: keeps its canonical text alone, and gives a new document each time; JavaScript's is
frozen, and a copy of it is not answered (Known limit: one that a page freezes itself); a report keeps
mappings of its own, of payloads and of public values, which are bytes and text.
"""

import json

import pytest

from ldpkit import Device, Report, Study, ask
from ldpkit import study as study_of
from tests import studies

MEMOIZED = {"name": "memoized", "epsilon": "2", "instantaneous_epsilon": "1.9", "of": "randomized_response"}


def versions_of_one_template(asked):
    template = studies.document({**studies.YES_NO, "mechanism": MEMOIZED})
    built = []
    for version, text in enumerate(asked, 1):
        template["version"] = version
        template["questions"][0]["text"] = text
        built.append(Study(template))
    return built


def versions_of_one_question(asked):
    question = ask.yes_no("ever", epsilon=2, mechanism=MEMOIZED)
    built = []
    for version, text in enumerate(asked, 1):
        question["text"] = text
        built.append(study_of("habits", "Habits", [question], version=version))
    return built


@pytest.mark.parametrize("build", [versions_of_one_template, versions_of_one_question])
def test_each_version_is_answered_as_built(tmp_path, build):
    """A report states the digest of the version that was answered."""
    first, second = build(["Did you cheat?", "Did you ever cheat?"])
    assert [study.questions[0].text for study in (first, second)] == ["Did you cheat?", "Did you ever cheat?"]
    device = Device(tmp_path, "4", require_consent=False)
    digests = set()
    for study in (first, second):
        device.answer(study, {"ever": True})
        digests.update(Report.from_json(queued.body).digest for queued in device.ledger.queued())
    assert digests == {first.digest, second.digest}


def test_editing_document_does_not_change_study():
    document = studies.document(studies.YES_NO)
    study = Study(document)
    before = study.to_json()
    document["questions"][0]["id"] = "other"
    study.document["questions"][0]["id"] = "other"
    assert json.loads(before) == study.document
    assert Study(study.document) == study
    assert study.to_json() == before


def test_editing_payloads_does_not_change_report():
    payloads, public = {"ever": b"1"}, {"side": "n"}
    report = Report("0" * 32, "habits", 1, "0" * 64, payloads, public=public)
    payloads["ever"], public["side"] = b"0", "s"
    assert (report.payloads, report.public) == ({"ever": b"1"}, {"side": "n"})
