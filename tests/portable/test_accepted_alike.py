"""The npm package's device takes and refuses invitations, days and public numbers as Python's does."""

from __future__ import annotations

import json
import os
import subprocess
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ldp_client import Device
from ldp_client.device.budget import Terms
from ldp_client.documents.errors import AnswerError, InputError, RefusedError
from ldp_client.documents.public import PublicField
from schemas import Study
from tests import studies
from tests.portable import npm
from tests.portable.platforms import JAVASCRIPT

INVITED = studies.document(studies.YES_NO)
INVITATIONS = [
    "word", " word ", "wo\u00adrd\u200b", "word\r\n", '"word".', "\u201eword\u201c", "<word>", "wo\u2011rd",
    "", " ",
    "https://c.example/s/survey#invitation=word", "https://c.example/s/survey#invitation=wo\n rd.", "wörd",
    None, 5, True, ["word"], {"word": 1},
]  # fmt: skip
AGE = {"id": "age", "bounds": ["-5", "1000000"], "step": "5"}
NUMBERS = ["5", "-5", "0", "7", "1000000", "1000005", "1" + "0" * 60]
NOW = datetime(2026, 6, 15, 12, 30, tzinfo=UTC)


def python_keeps(folder, given: Any) -> list[str]:
    """Return what `kept` in accepted.mjs returns; an error is its code."""
    study = Study(INVITED)
    places = count()

    def device() -> Device:
        return Device(folder / str(next(places)), max_epsilon="9", require_consent=False)

    def held(one: Device) -> str:
        return one.ledger.queued()[0].invitation

    first = device()
    try:
        first.answer(study, {"ever": True}, invitation=given)
        found = ["done", held(first)]
    except InputError:
        found = ["input"]
        first.answer(study, {"ever": True})
    try:
        first.invite(study.id, given)
        return [*found, "done", held(first)]
    except InputError:
        return [*found, "input", held(first)]


def python_answers(document: dict[str, Any], zone: str) -> str:
    try:
        Terms(Study(document)).refuse_outside_days(NOW.astimezone(ZoneInfo(zone)).date())
    except RefusedError:
        return "closed"
    return "done"


def python_sends(number: str) -> str:
    field: PublicField = Study({**INVITED, "public": [AGE]}).public[0]
    try:
        return field.value_of(int(number))
    except AnswerError:
        return "answer"


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "UTC", "Pacific/Pago_Pago"])
def test_javascript_accepts_and_rejects_the_same_as_python(tmp_path, zone):
    """The local date is tomorrow at UTC+14 and may be yesterday at UTC-11."""
    around = [(NOW + timedelta(days)).date().isoformat() for days in range(-3, 5)]
    days = [studies.document(studies.YES_NO, **{end: day}) for end in ("opens", "closes") for day in around]
    cases = {
        "invitations": {"study": INVITED, "given": INVITATIONS},
        "days": days,
        "numbers": {"study": {**INVITED, "public": [AGE]}, "given": NUMBERS},
    }
    arguments = [str(JAVASCRIPT / "index.js"), json.dumps(cases), str(int(NOW.timestamp() * 1000))]
    done = subprocess.run(
        [npm.newer_node(), "accepted.mjs", *arguments],
        cwd=npm.FOLDER,
        env={**os.environ, "TZ": zone},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["days"] == [python_answers(document, zone) for document in days]
    assert set(found["days"]) == {"done", "closed"}
    for number, sent in zip(NUMBERS, found["numbers"], strict=True):
        assert sent == python_sends(number), number
    for place, (given, kept) in enumerate(zip(INVITATIONS, found["invitations"], strict=True)):
        assert kept == python_keeps(tmp_path / str(place), given), given
    assert found["invitations"][1] == ["done", "word", "done", "word"]
