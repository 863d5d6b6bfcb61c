"""A waiting report loses its invitation when one is given again to another version's report.

Defence: The device: an invitation goes to one waiting report, first to one without any, and to none if a
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


def test_repeated_invitation_changes_nothing(device):
    answer(device, "A", "B")
    device.invite(FIRST.id, "B")
    device.invite(FIRST.id, "A")
    assert waiting(device) == {1: "A", 2: "B"}


def test_new_invitation_goes_to_one_waiting_report(device):
    answer(device, "A", "B")
    device.invite(FIRST.id, "C")
    assert waiting(device) == {1: "A", 2: "C"}
    device.invite(FIRST.id, "")
    assert waiting(device) == {1: "", 2: ""}


def test_new_invitation_goes_to_the_report_without_one(device):
    answer(device, "", "B")
    device.invite(FIRST.id, "C")
    assert waiting(device) == {1: "C", 2: "B"}
