"""A node's `ldpkit.toml` is lost while its study is open: devices pay for shares that are not accepted.

Defence: The node: serves the study as closed to devices, logs once a minute what to do, and can be closed
and summed; its invitations can be forgotten once it is closed. Known limit: devices that fetch the study
from another node.
"""

from __future__ import annotations

import pytest
from sqlalchemy import update

from collector.operator.inviting import invite
from collector.storage.invitations import Spending
from collector.storage.models import StudyRow
from ldp_client import Device
from ldp_client.documents.errors import RefusedError
from tests.attacks.conftest import KEY
from tests.collector.commands import exit_code
from tests.collector.conftest import build_report, build_study
from tests.kit.errors import raises
from tests.secure_sum.conftest import TOKEN, close_study

LOST = b"a key that is lost"


@pytest.fixture
def lost(network):
    """The second node's settings have another invitation_key than its invitations."""
    network.publish("ever", devices=4, max_faulty=1)
    network.answer(4)
    node = network.nodes[1]
    with node.app.extensions["ldpkit"].database.write() as session:
        session.execute(update(StudyRow).values(spending=Spending.start(LOST).stored))
    node.stop()
    node.start()
    return network


def forget(node):
    return exit_code(node.app, "invite", "summed", "--revoke-all")


def test_device_spends_nothing_at_node_without_its_key(lost, tmp_path, caplog):
    addresses = [node.address for node in lost.nodes]
    options = {"require_consent": False, "nodes": addresses, "max_delta": "0.001"}
    device = Device(tmp_path / "device", "8", collector=lost.nodes[1].url, **options)
    study = device.fetch("summed")
    assert "an open study is served as closed: setting invitation_key" in caplog.text
    with raises(RefusedError, "device.closed_early"):
        device.answer(study, {"ever": True}, lost.invitations.pop())
    assert device.ledger.spent() == []


def test_earlier_shares_can_be_summed_and_then_forgotten(lost, capsys):
    """The messages name a solution, and it works."""
    node = lost.nodes[1]
    assert forget(node) == 3
    said = capsys.readouterr().err
    assert "Restore its invitation_key" in said
    assert "If `ldpkit.toml` is lost" in said
    assert close_study(lost.study, [TOKEN] * 3)
    assert forget(node) == 0


def test_lost_invitation_key_is_logged_once_a_minute(make_harness, caplog):
    """Anyone can send reports with any invitation, and a line for each would fill the disk."""
    study = build_study()
    harness = make_harness(invitation_key=LOST.decode())
    harness.publish(study)
    place = f"sqlite:///{harness.path}"
    with harness.collector.database.write() as session:
        invite(session, study.id, 1, LOST)
    other = make_harness(database=place, invitation_key=KEY)
    for _ in range(5):
        report = build_report(study)
        path, headers = f"/v1/studies/{study.id}/reports/{report.id}", {"LDPKit-Invitation": "any"}
        answer = other.app.test_client().put(path, json=report.to_document(), headers=headers)
        assert answer.status_code == 503
    assert caplog.text.count("no invited report of study habits can be taken") == 1
