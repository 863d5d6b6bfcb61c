"""Withdraw while some nodes have closed a sum: a lying node makes the device forget a share in the sum.

Defence: The device: only knows what nodes claim, and one may lie. It keeps the secret, names the nodes
that deleted or kept it, and asks again until 30 days after the study's `closes`: a node that did not sum the
share deletes it at last.
"""

import json
from datetime import date, timedelta

import pytest
from werkzeug.wrappers import Response

from ldp_client import Direct
from ldp_client.device.budget import disclosures_of
from ldp_client.device.outbox import Queued
from ldp_client.device.requests import Outcome
from ldp_client.device.shares import delete_shares
from ldp_client.device.verdicts import GRACE_DAYS
from tests.secure_sum.conftest import ANSWERS, TOKEN, close_study
from tests.secure_sum.test_device import device_of, held


def answered(network, tmp_path, study, name):
    device = device_of(network, tmp_path / name)
    device.answer(study, {"ever": ANSWERS["ever"]}, network.invitations.pop())
    assert device.flush().sent == 1
    return device


def lying(node):
    """A node that acknowledges every deletion, and deletes nothing."""

    def answer(environment):
        if environment["REQUEST_METHOD"] != "DELETE":
            return None
        receipt = {"id": environment["PATH_INFO"].rsplit("/", 1)[1], "result": "withdrawn"}
        identity = node.app.extensions["ldpkit"].identity.hex()
        headers = {"LDPKit-Collector": identity, "Content-Type": "application/json"}
        return Response(json.dumps(receipt), 200, headers)

    return answer


def state_of(device):
    (told,) = disclosures_of(device.ledger)
    return [state for state, count in told.reports.items() if count]


@pytest.mark.slow
def test_lying_node_does_not_settle_withdrawal(network, tmp_path):
    study = network.publish("ever", devices=4, max_faulty=1)
    devices = [answered(network, tmp_path, study, name) for name in "abcd"]
    for node in network.nodes[:2]:
        assert node.post("/close").status_code == 200
    liar = network.nodes[2]
    liar.trouble = lying(liar)
    assert devices[0].withdraw(study.id) == 1
    for _ in range(2):
        flushed = devices[0].flush()
        assert (flushed.deleted, flushed.undeleted, flushed.stuck, flushed.refused) == (0, 1, 1, [])
        kept = ", ".join(node.url for node in network.nodes[:2])
        assert f"as these nodes report: {liar.url}; kept for the sum: {kept}." in flushed.stuck_reason
        assert "only if the deleting nodes tell the truth" in flushed.stuck_reason
    # It did not: the person is in the sum, and the device has not said otherwise.
    assert held(network) == [4, 4, 4]
    assert close_study(study, [TOKEN]).total.questions["ever"].n == 4
    # Its secret is here still: now that all are closed, they say so.
    liar.trouble = None
    assert len(devices[0].flush().refused) == 1
    assert state_of(devices[0]) == ["sent"]


@pytest.mark.slow
@pytest.mark.parametrize("closed", [1, 2])
def test_partial_deletion_is_reported_as_being_deleted(network, tmp_path, closed):
    study = network.publish("ever", devices=4, max_faulty=1)
    devices = [answered(network, tmp_path, study, name) for name in "abcd"]
    for node in network.nodes[:closed]:
        assert node.post("/close").status_code == 200
    assert devices[0].withdraw(study.id) == 1
    flushed = devices[0].flush()
    assert (flushed.deleted, flushed.undeleted, flushed.likely, flushed.refused) == (0, 1, 0, [])
    assert held(network) == [4] * closed + [3] * (3 - closed)
    assert state_of(devices[0]) == ["being_deleted"]
    assert close_study(study, [TOKEN]).total.questions["ever"].n == 3
    # What a node does not have, and did not sum, it says to have deleted: once that is all of them it is so.
    for node in network.nodes[:closed]:
        with node.app.extensions["ldpkit"].database.write() as session:
            session.connection().exec_driver_sql("UPDATE reports SET payloads = x''")
    assert devices[0].flush().deleted == 1
    assert state_of(devices[0]) == []


@pytest.mark.slow
def test_silent_node_is_asked_again(network, tmp_path):
    study = network.publish("ever")
    device = answered(network, tmp_path, study, "a")
    network.nodes[0].post("/close")
    network.nodes[2].stop()
    device.withdraw(study.id)
    flushed = device.flush(attempts=1)
    assert (flushed.undeleted, flushed.stuck) == (1, 0)
    network.nodes[2].start()
    network.nodes[2].post("/close")
    assert device.flush(attempts=1).stuck == 1


@pytest.mark.parametrize(
    ("closes", "state"),
    [("", "stuck"), (date.today(), "stuck"), (date.today() - timedelta(GRACE_DAYS + 1), "refused")],
)
def test_withdrawal_ends_30_days_after_last_day(network, closes, state):
    nodes = " ".join(node.url for node in network.nodes)
    queued = Queued("00" * 16, nodes, "summed", "", secret="00" * 16, closes=str(closes))
    said = iter([Outcome("sent"), Outcome("refused", "kept"), Outcome("refused", "kept")])
    outcome = delete_shares(Direct(), queued, lambda _node, _outcome: next(said))
    assert outcome.state == state
    assert "as these nodes report" in outcome.reason
