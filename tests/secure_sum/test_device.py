"""A device that answers a secure sum: all shares are in the ledger before the first is sent."""

from __future__ import annotations

import json

import pytest
from werkzeug.wrappers import Response

from ldp_client import Device
from ldp_client.device.budget import disclosures_of
from ldp_client.documents.errors import AlreadyAnsweredError, RefusedError
from ldp_client.files.batch import perturb_file
from tests.kit.errors import raises
from tests.ldp_client.devices import problem
from tests.secure_sum.conftest import ANSWERS, INVITATION, TOKEN, build_study, close_study


def device_of(network, folder, **options):
    collector = network.nodes[0].address.partition("#")[0]
    device = Device(folder, "8", collector, max_delta="0.001", nodes=trusted(network), **options)
    device.consent(device.fetch("summed"))
    return device


def trusted(network):
    return [node.address for node in network.nodes]


def held(network):
    """How many shares each node has."""
    counts = []
    for node in network.nodes:
        with node.app.extensions["ldpkit"].database.read() as session:
            counts.append(session.connection().exec_driver_sql(COUNT).scalar())
    return counts


COUNT = "SELECT COUNT(*) FROM reports WHERE payloads != x''"


def refusing(_environment):
    return Response(status=503)


def test_devices_answer_send_and_are_summed(network, tmp_path):
    study = network.publish(devices=4, max_faulty=1)
    for name in "abc":
        device = device_of(network, tmp_path / name)
        device.answer(study, ANSWERS, network.invitations.pop())
        assert device.flush().sent == 1
        with pytest.raises(AlreadyAnsweredError):
            device.answer(study, ANSWERS, INVITATION)
    assert close_study(study, [TOKEN]).total.questions["ever"].n == 3


def test_all_shares_are_written_before_the_first_is_sent(network, tmp_path):
    study = network.publish("ever")
    device = device_of(network, tmp_path / "device")
    device.answer(study, {"ever": True}, INVITATION)
    (queued,) = device.ledger.queued()
    assert len(json.loads(queued.body)) == len(queued.nodes) == 3
    assert held(network) == [0, 0, 0]


@pytest.mark.parametrize("away", [0, 1, 2])
def test_unreachable_node_gets_the_same_share_later(network, tmp_path, away):
    study = network.publish("ever")
    device = device_of(network, tmp_path / "device")
    device.answer(study, {"ever": True}, INVITATION)
    (before,) = device.ledger.queued()
    network.nodes[away].trouble = refusing
    assert device.flush(attempts=1).waiting == 1
    assert sum(held(network)) == 2
    (after,) = Device(tmp_path / "device", "8").ledger.queued()
    assert after.body == before.body
    network.nodes[away].trouble = None
    assert device.flush(attempts=1).sent == 1
    assert held(network) == [1, 1, 1]


@pytest.mark.slow
def test_a_lost_acknowledgement_sends_the_same_bytes_again(network, tmp_path):
    study = network.publish("ever")
    device = device_of(network, tmp_path / "device")
    device.answer(study, {"ever": True}, INVITATION)
    node = network.nodes[1]

    def lose(environment):
        Response.from_app(node.app, environment).get_data()
        return Response(status=502)

    node.trouble = lose
    assert device.flush(attempts=2).waiting == 1
    node.trouble = None
    assert device.flush().sent == 1
    assert held(network) == [1, 1, 1]


def test_withdrawal_reaches_every_node(network, tmp_path):
    study = network.publish("ever")
    device = device_of(network, tmp_path / "device")
    device.answer(study, {"ever": True}, INVITATION)
    device.flush()
    assert device.withdraw(study.id) == 1
    network.nodes[2].trouble = refusing
    assert device.flush(attempts=1).undeleted == 1
    assert held(network) == [0, 0, 1]
    network.nodes[2].trouble = None
    assert device.flush().deleted == 1
    assert held(network) == [0, 0, 0]


def test_sent_share_is_deleted_after_another_nodes_rejection(network, tmp_path):
    study = network.publish("ever")
    device = device_of(network, tmp_path / "device")
    device.answer(study, {"ever": True}, INVITATION)
    invalid = problem("report-invalid", study.digest)[1]

    def refuse(environment):
        # Who it is, and that it has published the study, it says itself.
        if environment["REQUEST_METHOD"] == "GET":
            return None
        identity = network.nodes[1].app.extensions["ldpkit"].identity.hex()
        headers = {"LDPKit-Collector": identity, "Content-Type": "application/problem+json"}
        return Response(invalid, 422, headers)

    network.nodes[1].trouble = refuse
    assert len(device.flush(attempts=1).refused) == 1
    network.nodes[1].trouble = None
    assert held(network) == [1, 0, 1]
    assert device.withdraw(study.id) == 1
    assert device.flush().deleted == 1
    assert held(network) == [0, 0, 0]


def test_shares_are_not_sent_to_nodes_removed_from_the_policy(network, tmp_path):
    study = network.publish("ever")
    device = device_of(network, tmp_path / "device")
    device.answer(study, {"ever": True}, INVITATION)
    narrow = Device(
        tmp_path / "device",
        "8",
        device.collector.replace("127.0.0.1", "localhost"),
        allowed_hosts=["localhost"],
        nodes=trusted(network),
    )
    flushed = narrow.flush()
    assert (flushed.sent, flushed.waiting, held(network)) == (0, 1, [0, 0, 0])
    assert "the host 127.0.0.1 is not among" in flushed.reason
    assert device.flush().sent == 1
    assert device.withdraw(study.id) == 1
    assert narrow.flush().undeleted == 1
    assert held(network) == [1, 1, 1]


def test_share_cannot_be_withdrawn_after_the_close(network, tmp_path):
    study = network.publish("ever")
    device = device_of(network, tmp_path / "device")
    device.answer(study, {"ever": True}, INVITATION)
    device.flush()
    for node in network.nodes:
        node.post("/close")
    device.withdraw(study.id)
    flushed = device.flush()
    assert (flushed.deleted, flushed.undeleted, len(flushed.refused)) == (0, 0, 1)
    # It was sent, and is part of the sum: no node refused it.
    (told,) = disclosures_of(device.ledger)
    assert told.reports == {"sent": 1, "waiting": 0, "refused": 0, "being_deleted": 0}
    assert (device.flush().sent, device.withdraw(study.id)) == (0, 1)


def test_a_node_that_the_policy_does_not_allow_is_refused(tmp_path):
    study = build_study("ever", nodes=[f"https://{name}.example#" + "0" * 128 for name in "ab"])
    device = Device(
        tmp_path,
        "8",
        allowed_hosts=["a.example"],
        require_consent=False,
        nodes=study.document["protocol"]["nodes"],
    )
    with raises(RefusedError, "device.host", "b.example"):
        device.answer(study, {"ever": True}, INVITATION)
    assert device.ledger.spent() == []


def test_node_key_of_low_order_is_refused(tmp_path):
    """Under it anybody could read the shares; it used to be reported as a damaged ledger."""
    addresses = [f"https://{name}.example#{key * 64}{name * 64}" for name, key in (("a", "0"), ("b", "1"))]
    study = build_study("ever", nodes=addresses)
    device = Device(tmp_path, "8", require_consent=False, nodes=addresses)
    with raises(RefusedError, "device.node_key_weak", "0" * 64):
        device.answer(study, {"ever": True}, INVITATION)
    assert (device.ledger.spent(), device.ledger.queued()) == ([], [])


def test_perturb_rejects_a_secure_sum_study(tmp_path):
    """Such reports would protect no one."""
    (tmp_path / "answers").write_text('{"ever": "yes"}\n')
    with raises(RefusedError, "core.sum_alone"):
        perturb_file(build_study("ever"), str(tmp_path / "answers"), str(tmp_path / "reports"))


def test_the_body_that_a_device_sends_is_small(network):
    """8 bytes a number once, and 80 bytes a further node (64 (M − 1) + 200 is the most, to M = 10)."""
    study = network.publish()
    sizes = [len(message.body) for message in network.messages()]
    numbers = sum(mechanism.size for mechanism in network.mechanisms.values())
    assert sum(sizes) == 8 * numbers + 48 + 80 * (len(study.protocol.nodes) - 1)
    assert 8 * numbers + 48 + 80 * 9 <= 8 * numbers + 64 * 9 + 200
