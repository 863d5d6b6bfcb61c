"""Nothing leaves without consent to this version; only fields declared public leave without noise.

tests/ldp_client/test_public_answers.py has the public values that a device rejects.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ldp_client import Device, mechanisms_of
from ldp_client.device import device as device_module
from ldp_client.device import policy as policy_module
from ldp_client.documents.errors import RefusedError
from schemas import Report, Study
from tests import studies
from tests.ldp_client.devices import Server
from tests.promises.watched_ledger import Arrivals, Patch
from tests.statistics import share_is

BUDGET = "200"
PUBLIC = [
    {"id": "region", "choices": ["north", "a longer name"]},
    {"id": "age", "bounds": ["18", "99"], "step": "1"},
]
IN_CLEAR = {"region": "north", "age": "42"}
ANSWERS = {"ever": True, "hours": 3}
# The fields of a report's text, but for its id and its noise.
FIELDS = {"format", "study", "version", "digest", "public"}
EVER, HOURS = ([f"{name}-{index:02}" for index in range(50)] for name in ("ever", "hours"))
MANY = [{**studies.YES_NO, "id": name} for name in EVER] + [{**studies.NUMBER, "id": name} for name in HOURS]


def study_of(version: int = 1, **fields: Any) -> Study:
    """A version of one study, each with words of its own."""
    questions = [{**question, "text": f"Round {version}?"} for question in (studies.YES_NO, studies.NUMBER)]
    return Study(studies.document(*questions, version=version, **fields))


def agrees_to_nothing(_device: Device) -> None:
    """The person was not asked."""


def agrees_to_an_earlier_version(device: Device) -> None:
    """The person agreed to version 1, and is asked version 2."""
    device.consent(study_of())


def agrees_to_another_document(device: Device) -> None:
    """The person agreed to a document of the same version, in which one field more is public."""
    device.consent(study_of(2, public=PUBLIC[:1]))


def agrees_elsewhere(device: Device) -> None:
    """The person agreed to the same document of another collector."""
    Device(device.ledger.folder, BUDGET, "https://other.example").consent(study_of(2))


def takes_it_back(device: Device) -> None:
    """The person agreed to this very document, and withdrew."""
    device.consent(study_of(2))
    device.withdraw("survey")


def left_without_consent(folder: Path, server: Server, agree: Callable[[Device], None]) -> list[str]:
    """What a device did with answers to version 2, to which the person did not agree."""
    server.requests = Arrivals()
    device = Device(folder, BUDGET, server.url)
    agree(device)
    wrong = []
    try:
        device.answer(study_of(2), ANSWERS)
        wrong.append("it answered")
    except RefusedError as error:
        wrong += [] if error.code == "device.no_consent" else [f"it refused as {error.code}"]
    flushed = device.flush(attempts=1, now=True)
    wrong += ["it sent"] if server.requests or flushed.sent else []
    wrong += ["a report waits"] if flushed.waiting or device.ledger.queued() else []
    return wrong + (["it spent"] if device.epsilon_left != Fraction(BUDGET) else [])


NOT_AGREED = [agrees_to_nothing, agrees_to_an_earlier_version, agrees_to_another_document, agrees_elsewhere]


@pytest.mark.parametrize("agree", [*NOT_AGREED, takes_it_back])
def test_nothing_leaves_without_consent(
    tmp_path: Path, server: Server, agree: Callable[[Device], None]
) -> None:
    assert not left_without_consent(tmp_path, server, agree)


def test_report_is_sent_with_consent(tmp_path: Path, server: Server) -> None:
    """This shows that the check above can fail."""
    wrong = left_without_consent(tmp_path, server, lambda device: device.consent(study_of(2)))
    assert wrong == ["it answered", "it sent", "it spent"]


def ignore_the_version(connection: sqlite3.Connection, study: Study) -> None:
    """Consent to any version is consent to all."""
    if not connection.execute("SELECT 1 FROM consents WHERE study = ?", (study.id,)).fetchone():
        raise RefusedError("no consent", code="device.no_consent")


def test_planted_consent_that_ignores_version_is_found(
    tmp_path: Path, server: Server, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(policy_module, "refuse_without_consent", ignore_the_version)
    assert left_without_consent(tmp_path, server, agrees_to_an_earlier_version)


def left_in_clear(folder: Path, public: list[dict[str, Any]]) -> list[str]:
    """What a report of many a yes, and one of as many a no, tells without noise."""
    fields = {"public": public} if public else {}
    study = Study(studies.document(*MANY, **fields))
    declared = {field["id"]: IN_CLEAR[field["id"]] for field in public}
    shapes, wrong = [], []
    for ever in (True, False):
        device = Device(folder / str(ever), BUDGET)
        device.consent(study)
        answers = {name: ever if name in EVER else 12 * ever for name in EVER + HOURS}
        device.answer(study, answers, public=declared)
        (text,) = [queued.body for queued in device.ledger.queued()]
        shapes.append((shape_of(text), len(text)))
        payloads = Report.from_json(text).payloads
        kept = sum(payloads[name] == bytes([ever]) for name in EVER)
        truthful = float(mechanisms_of(study)[EVER[0]].p)
        wrong += [] if share_is(kept, len(EVER), truthful) else [f"{kept} answers are the truth"]
        numbers = {payloads[name] for name in HOURS}
        wrong += [] if len(numbers) > len(HOURS) // 2 else ["numbers leave without noise"]
    clear = json.loads(shapes[0][0])
    wrong += [] if len(set(shapes)) == 1 else ["what is beside the noise depends on the answer"]
    wrong += [] if clear.get("public", {}) == declared else ["more is in clear, or less"]
    return wrong + ([] if set(clear) <= FIELDS else ["a field is unknown"])


def shape_of(text: str) -> str:
    """The report's text without its noise and its id."""
    document = json.loads(text)
    return json.dumps({name: value for name, value in document.items() if name not in ("id", "payloads")})


@pytest.mark.parametrize("public", [PUBLIC, PUBLIC[:1], []], ids=["two fields", "one field", "none"])
def test_only_public_fields_leave_without_noise(tmp_path: Path, public: list[dict[str, Any]]) -> None:
    assert not left_in_clear(tmp_path, public)


def test_a_planted_answer_without_noise_is_found(tmp_path: Path, monkeypatch: Patch) -> None:
    perturb = device_module.perturb_answers

    def telling(study: Study, mechanisms: Any, answers: dict[str, Any], random: Any) -> Report:
        report = perturb(study, mechanisms, answers, random)
        report.payloads.update({name: bytes([answers[name]]) for name in EVER})
        return report

    monkeypatch.setattr(device_module, "perturb_answers", telling)
    assert left_in_clear(tmp_path, PUBLIC[:1])
