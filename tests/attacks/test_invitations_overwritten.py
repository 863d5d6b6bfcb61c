"""Lose the invitation of a report that waits, by giving one to another version's report again.

Defence: The device: an invitation goes to one waiting report, one without any first, and nowhere when a
report has it already; in browsers to the latest one.
"""

import pytest

from ldp_client import Device
from schemas import Study
from tests import studies

FIRST = Study(studies.document(studies.MEMOIZED))
SECOND = Study({**FIRST.document, "version": 2})


def waiting(device):
    return {queued.version: queued.invitation for queued in device.ledger.queued()}


@pytest.fixture
def device(tmp_path):
    return Device(tmp_path / "device", "8", "http://127.0.0.1:9", require_consent=False)


def answer(device, *invitations):
    for study, invitation in zip((FIRST, SECOND), invitations):
        device.answer(study, {study.questions[0].id: study.questions[0].choices[0]}, invitation)


def test_the_same_one_again(device):
    answer(device, "A", "B")
    device.invite(FIRST.id, "B")
    device.invite(FIRST.id, "A")
    assert waiting(device) == {1: "A", 2: "B"}


def test_a_new_one_is_one_reports(device):
    answer(device, "A", "B")
    device.invite(FIRST.id, "C")
    assert waiting(device) == {1: "A", 2: "C"}
    device.invite(FIRST.id, "")
    assert waiting(device) == {1: "", 2: ""}


def test_one_that_has_none_gets_it(device):
    answer(device, "", "B")
    device.invite(FIRST.id, "C")
    assert waiting(device) == {1: "C", 2: "B"}
