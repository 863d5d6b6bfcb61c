"""Nodes of a secure sum take one share for each token, and nothing without a token."""

from hashlib import sha256

import pytest

from ldp_client import Device
from ldp_client.core.tokens import header_of
from ldp_client.device import outbox
from ldp_client.documents.errors import RefusedError
from ldp_client.secure_sum import SHARES, context, seal, shares_nonce
from tests.kit.errors import raises
from tests.kit.secure_sum import ANSWERS, TOKEN, Share, build_study, close_study, kind
from tests.ldp_client.issuers import token_of


@pytest.fixture
def study(network):
    """A study of three devices, at all nodes."""
    return network.publish("hours", devices=4, max_faulty=1)


def put(node, message, token=None, digests=b""):
    headers = {"Authorization": header_of(token)} if token else {}
    if digests:
        headers[SHARES] = digests.hex()
    return node.put(Share(message.node, message.path, message.body, headers))


def digests_of(messages):
    return b"".join(sha256(message.body).digest() for message in messages)


def token_for(study, messages):
    """The token of these shares, as a device asks for it."""
    report_id = messages[0].path.rpartition("/")[2]
    return token_of(study, nonce=shares_nonce(report_id, digests_of(messages)))


def put_all(network, messages, token):
    digests = digests_of(messages)
    return [put(node, one, token, digests) for node, one in zip(network.nodes, messages, strict=True)]


@pytest.mark.attack(2)
def test_each_node_spends_the_token_in_its_own_database(network, study):
    """Someone sends shares without a token, or two with one token."""
    messages = network.messages()
    token = token_for(study, messages)
    for status in (201, 200):
        assert [one.status_code for one in put_all(network, messages, token)] == [status] * len(messages)
    for node, message in zip(network.nodes, network.messages(), strict=True):
        assert kind(put(node, message)) == (401, "ticket-needed")


def test_device_refuses_a_sum_that_takes_shares_without_tokens(network, tmp_path):
    """Anyone could send many shares, and so choose whom the person's answer is summed with."""
    nodes = [node.address for node in network.nodes]
    device = Device(tmp_path, "8", max_delta="0.001", require_consent=False, nodes=nodes)
    with raises(RefusedError, "device.sum_without_tokens"):
        device.answer(build_study("ever", nodes=nodes), {"ever": True})
    assert device.ledger.spent() == []


@pytest.mark.attack(2)
def test_token_is_bound_to_the_shares_at_every_node(network, study):
    """A node replaces all reports but one by its own, and reads that one from the sum."""
    messages, others = network.messages(), network.messages()
    for response in put_all(network, messages, token_of(study)):
        assert kind(response) == (401, "ticket-invalid")
    token, digests = token_for(study, messages), digests_of(messages)
    second = network.nodes[1]
    report_id = messages[1].path.rpartition("/")[2]
    info = context(study.digest, report_id, 1)
    own = seal(study.protocol.nodes[1].sealing_key, info, bytes(32))
    for message, said in (
        (Share(second.url, messages[1].path, own, {}), digests),
        (others[1], digests),
        (others[1], digests_of(others)),
        (messages[1], digests_of(others)),
        (messages[1], b""),
        (messages[1], digests[:-1]),
        (messages[1], digests + bytes(32)),
        (messages[1], digests[32:64] + digests[32:]),
    ):
        assert kind(put(second, message, token, said))[0] in (401, 422)
    assert put(second, messages[1], token, digests).status_code == 201
    assert kind(put(second, others[1], token, digests))[1] == "ticket-invalid"


@pytest.mark.slow
def test_device_gets_one_token_and_sends_it_to_all_nodes(network, study, tmp_path, monkeypatch):
    now = [20_000 * 86_400.0]
    monkeypatch.setattr(outbox, "now", lambda: now[0])
    for name in "abc":
        collector = network.nodes[0].address.partition("#")[0]
        nodes = study.document["protocol"]["nodes"]
        device = Device(tmp_path / name, "8", collector, max_delta="0.001", nodes=nodes)
        device.consent(device.fetch("summed"))
        device.answer(study, {"hours": ANSWERS["hours"]}, "CODE")
        assert device.flush().scheduled == 1
        (queued,) = device.ledger.queued()
        now[0] = queued.due
        assert device.flush().sent == 1
    assert close_study(study, [TOKEN] * len(network.nodes)).total.questions["hours"].n == 3
