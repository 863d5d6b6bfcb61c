"""What a device does in its life: consent, answer, send, answer again, withdraw."""

from __future__ import annotations

from contextlib import suppress
from random import SystemRandom

from ldp_client import Device
from ldp_client.documents.errors import RefusedError
from ldp_client.mechanisms import MECHANISMS
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Memoized

BUDGET = "8"
ONCE = Study(studies.document(studies.NUMBER, studies.CHOICE, id="once"))
WITHDRAWN = Study(studies.document(studies.CHOICE, id="withdrawn"))
WAVES = [Study(studies.document(studies.YES_NO, id="waves", version=version)) for version in (1, 2)]
ALL = [ONCE, *WAVES, WITHDRAWN]


def live(folder: str, url: str) -> None:
    """A whole life, from wherever an earlier one ended; true answers differ from life to life."""
    MECHANISMS["randomized_response"] = Memoized
    device = Device(folder, BUDGET, url)
    for study in (ONCE, WITHDRAWN, WAVES[0]):
        _answer(device, study)
    device.flush(attempts=1)
    _answer(device, WAVES[1])
    device.withdraw(WITHDRAWN.id)
    device.flush(attempts=1)


def _answer(device: Device, study: Study) -> None:
    random = SystemRandom()
    answers = {
        "hours": random.uniform(0, 12),
        "occupation": random.choice(studies.CHOICE["choices"]),
        "ever": random.random() < 0.5,
    }
    with suppress(RefusedError):
        device.consent(study)
        device.answer(study, {question.id: answers[question.id] for question in study.questions})
