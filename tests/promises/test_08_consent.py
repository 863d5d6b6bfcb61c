"""Nothing leaves without consent to this version; only fields declared public leave without noise.

tests/ldp_client/test_answering.py has the public values that a device rejects.
"""

import json
from fractions import Fraction

import pytest

from ldp_client import Device, answering, mechanisms_of
from ldp_client.device import policy
from ldp_client.documents.errors import RefusedError
from schemas import Report, Study
from tests import studies
from tests.kit.errors import raises
from tests.statistics import share_is

BUDGET = "200"
PUBLIC = [
    {"id": "region", "choices": ["north", "a longer name"]},
    {"id": "age", "bounds": ["18", "99"], "step": "1"},
]
IN_CLEAR = {"region": "north", "age": "42"}
EVER, HOURS = ([f"{name}-{index:02}" for index in range(50)] for name in ("ever", "hours"))
MANY = [{**studies.YES_NO, "id": name} for name in EVER] + [{**studies.NUMBER, "id": name} for name in HOURS]


def study_of(version=1, **fields):
    """A version of one study, each with words of its own."""
    questions = [{**question, "text": f"Round {version}?"} for question in (studies.YES_NO, studies.NUMBER)]
    return Study(studies.document(*questions, version=version, **fields))


def withdraw_consent(device):
    device.consent(study_of(2))
    device.withdraw("survey")


def consent_elsewhere(device):
    Device(device.ledger.folder, BUDGET, "https://other.example").consent(study_of(2))


# What a person agreed to who is asked version 2.
AGREED = {
    "nothing": lambda _device: None,
    "an earlier version": lambda device: device.consent(study_of()),
    "a document with one public field more": lambda device: device.consent(study_of(2, public=PUBLIC[:1])),
    "the document of another collector": consent_elsewhere,
    "this document, and withdrew": withdraw_consent,
}


def check_refusal(folder, server, agreed):
    """A device takes, spends and sends no answers to version 2, to which the person did not agree."""
    device = Device(folder, BUDGET, server.url)
    AGREED[agreed](device)
    with raises(RefusedError, "device.no_consent"):
        device.answer(study_of(2), {"ever": True, "hours": 3})
    device.flush(attempts=1, now=True)
    assert (server.requests, device.ledger.queued()) == ([], [])
    assert device.epsilon_left == Fraction(BUDGET)


@pytest.mark.parametrize("agreed", AGREED)
def test_nothing_leaves_without_consent(tmp_path, server, agreed):
    check_refusal(tmp_path, server, agreed)


def ignore_the_version(connection, study):
    """Consent to any version is consent to all."""
    if not connection.execute("SELECT 1 FROM consents WHERE study = ?", (study.id,)).fetchone():
        raise RefusedError("no consent", code="device.no_consent")


def test_planted_consent_that_ignores_version_is_found(tmp_path, server, monkeypatch):
    monkeypatch.setattr(policy, "refuse_without_consent", ignore_the_version)
    with pytest.raises(pytest.fail.Exception):
        check_refusal(tmp_path, server, "an earlier version")


def check_clear(folder, public):
    """A report of many a yes, and one of as many a no, tell the same without noise: what is public."""
    study = Study(studies.document(*MANY, **({"public": public} if public else {})))
    declared = {field["id"]: IN_CLEAR[field["id"]] for field in public}
    texts = []
    for ever in (True, False):
        device = Device(folder / str(ever), BUDGET, require_consent=False)
        answers = {name: ever if name in EVER else 12 * ever for name in EVER + HOURS}
        device.answer(study, answers, public=declared)
        (queued,) = device.ledger.queued()
        texts.append(queued.body)
        payloads = Report.from_json(queued.body).payloads
        kept = sum(payloads[name] == bytes([ever]) for name in EVER)
        assert share_is(kept, len(EVER), float(mechanisms_of(study)[EVER[0]].p))
        assert len({payloads[name] for name in HOURS}) > len(HOURS) // 2
    first, second = map(json.loads, texts)
    assert len(texts[0]) == len(texts[1])
    assert {name for name in first if first[name] != second[name]} == {"id", "payloads"}
    assert first.get("public", {}) == declared
    assert set(first) <= {"format", "study", "version", "digest", "public", "id", "payloads"}


@pytest.mark.parametrize("public", [PUBLIC, PUBLIC[:1], []], ids=["two fields", "one field", "none"])
def test_only_public_fields_leave_without_noise(tmp_path, public):
    check_clear(tmp_path, public)


def test_a_planted_answer_without_noise_is_found(tmp_path, monkeypatch):
    perturb = answering.perturb_answers

    def telling(study, mechanisms, answers, random):
        report = perturb(study, mechanisms, answers, random)
        report.payloads.update({name: bytes([answers[name]]) for name in EVER})
        return report

    monkeypatch.setattr(answering, "perturb_answers", telling)
    with pytest.raises(AssertionError):
        check_clear(tmp_path, PUBLIC[:1])
