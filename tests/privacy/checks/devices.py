"""Compares rounds of devices with ledgers, on given bytes, with reports that are assembled here.

A ledger that forgets, redraws or queues a wrong answer shows in no mechanism and no report of one round.
"""

import tempfile
from collections.abc import Iterator
from typing import Any

from ldp_client import answering
from ldp_client.audit.answers import Stream
from ldp_client.audit.findings import Check
from ldp_client.device.device import Device
from ldp_client.documents.errors import LdpkitError
from ldp_client.documents.study import Study
from ldp_client.mechanisms.memoized import Remembering
from tests.privacy.checks.reports import of_one_person

Mechanisms = dict[str, Any]
Answers = dict[str, Any]


DEVICES = 10
ROUNDS = 3


def device_checks(study: Study, mechanisms: Mechanisms, told: list[Answers]) -> Iterator[Check]:
    """Reports that devices queue, each opened anew for each version, which answers it once."""
    versions = versions_of(study, ROUNDS)
    wrong, twice, reports = 0, 0, 0
    for seed in range(min(DEVICES, len(told))):
        ready = of_one_person(mechanisms)
        with tempfile.TemporaryDirectory() as folder:
            for later, version in enumerate(versions):
                answers = answers_to(version, told[(seed + 7 * later) % len(told)])
                own = DEVICES * later + seed
                # As a device does that was switched off since: all that it has is what it kept.
                for name, mechanism in ready.items():
                    if hasattr(mechanisms[name], "permanent"):
                        ready[name] = Remembering(mechanisms[name], mechanism.answer)
                asked = {question.id: ready[question.id] for question in version.questions}
                expected = answering.perturb_answers(version, asked, answers, Stream(own))
                wrong += _queued_by(folder, version, answers, own) != expected.to_json()
                twice += bool(_queued_by(folder, version, answers, own + 1))
                reports += 1
    yield Check(
        "what is queued is what was drawn, round after round",
        not wrong,
        f"{wrong} of {reports} reports differ",
    )
    yield Check("no version is answered twice", not twice, f"{twice} of {reports} were")


def _queued_by(folder: str, version: Study, answers: Answers, seed: int) -> str:
    """The text of the report that a device has queued, none where it refused to answer."""
    public = {field.id: answers[field.id] for field in version.public}
    private = {name: answers[name] for name in answers if name not in public}
    try:
        device = Device(folder, "1000000", max_delta="0.999999", require_consent=False)
        device._random = Stream(seed)
        made = device.answer(version, private, public=public)
        (text,) = [one.body for one in device.ledger.queued() if one.report_id == made]
    except (LdpkitError, ValueError):
        return ""
    return text


def versions_of(study: Study, most: int) -> list[Study]:
    """The study on any day, and higher versions that ask its memoized questions again.

    Without its channel, of which a report holds nothing: a device refuses one that it cannot go through, such
    as, in a trial, those of this machine.
    """
    left_out = ("opens", "closes", "channel")
    document = {key: value for key, value in study.document.items() if key not in left_out}
    again = [one for one in document["questions"] if one["mechanism"]["name"] == "memoized"]
    versions = [Study({**document, "version": 1})]
    for number in range(2, most + 1 if again else 2):
        versions.append(Study({**_later(document, again), "version": number}))
    return versions


def _later(document: dict[str, Any], again: list[dict[str, Any]]) -> dict[str, Any]:
    """A document that asks these questions alone, under the titles above them so far."""
    asked = [one["id"] for one in again]
    sections = [
        {**one, "questions": [name for name in one["questions"] if name in asked]}
        for one in document.get("sections", [])
    ]
    parts = {
        "sections": [one for one in sections if one["questions"]],
        "public": document.get("public", []),
    }
    rest = {key: value for key, value in document.items() if key not in ("paper", *parts)}
    return {**rest, **{key: parts[key] for key in parts if parts[key]}, "questions": again}


def answers_to(version: Study, answers: Answers) -> Answers:
    """The answers, and public values, that a version asks for."""
    asked = [question.id for question in version.questions] + [field.id for field in version.public]
    return {name: answers[name] for name in asked}
