"""A device that answers an invited study, against a real collector."""

from __future__ import annotations

import pytest

from ldp_client import Device
from tests.collector.conftest import ANSWERS, build_study


@pytest.fixture
def invited(start_server):
    """A server with an invited study; two invitations."""
    server = start_server()
    study = build_study()
    assert server.request("POST", "/v1/studies", study.document) == 201
    return server, study, server.invitations(study.id, 2)


def answered(server, study, folder, invitation):
    device = Device(folder, "8", server.url)
    device.consent(study)
    device.answer(study, ANSWERS, invitation)
    return device


def test_an_invitation_lets_one_device_in(invited, tmp_path):
    server, study, (first, _second) = invited
    assert answered(server, study, tmp_path / "a", first).flush(attempts=1).sent == 1
    used = answered(server, study, tmp_path / "b", first).flush(attempts=1)
    assert (used.sent, used.waiting, used.refused) == (0, 1, [])
    assert "invitation" in used.reason


def test_a_wrong_invitation_costs_nothing_and_can_be_replaced(invited, tmp_path):
    server, study, (first, _second) = invited
    device = answered(server, study, tmp_path / "a", "mistyped")
    (before,) = device.ledger.queued()
    assert device.flush(attempts=1).waiting == 1
    device.invite(study.id, first)
    (after,) = device.ledger.queued()
    assert after.body == before.body
    assert device.flush(attempts=1).sent == 1


def test_the_ledger_forgets_the_invitation(invited, tmp_path):
    server, study, (first, _second) = invited
    device = answered(server, study, tmp_path / "a", first)
    device.flush(attempts=1)
    assert first.encode() not in (tmp_path / "a" / "ledger.sqlite3").read_bytes()
