"""Nodes of a secure sum take one share for each token, and need no invitation then."""

from hashlib import sha256

import pytest

from collector.operator.inviting import write_invitations
from ldp_client import Device
from ldp_client.core.tokens import header_of
from ldp_client.device import outbox
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms import mechanisms_of
from ldp_client.secure_sum.messages import SHARES, Message, context, seal, shares_nonce
from schemas import Study
from tests.kit.errors import raises
from tests.ldp_client.issuers import Issuer, channel_of, token_of
from tests.secure_sum.conftest import ANSWERS, TOKEN, build_study, close_study, kind, shares_of


@pytest.fixture
def tokened(network):
    """A study that takes tokens, at all nodes."""
    return publish(network, "https://issuer.example")


def publish(network, issuer):
    addresses = [node.address for node in network.nodes]
    plain = build_study("hours", nodes=addresses, devices=4, max_faulty=1)
    study = Study({**plain.document, "channel": channel_of(issuer)})
    network.study, network.mechanisms = study, mechanisms_of(study)
    for node in network.nodes:
        assert node.publish(study).status_code == 201
    return study


def put(node, message, token=None, digests=b""):
    headers = {"Authorization": header_of(token)} if token else {"LDPKit-Invitation": message.invitation}
    if digests:
        headers[SHARES] = digests.hex()
    binary = "application/octet-stream"
    return node.app.test_client().put(message.path, data=message.body, content_type=binary, headers=headers)


def messages_of(study):
    return shares_of(study, {"hours": ANSWERS["hours"]}, "CODE")[1]


def digests_of(messages):
    return b"".join(sha256(message.body).digest() for message in messages)


def token_for(study, messages):
    """The token of these shares, as a device asks for it."""
    report_id = messages[0].path.rpartition("/")[2]
    return token_of(study, nonce=shares_nonce(report_id, digests_of(messages)))


def put_all(network, messages, token):
    digests = digests_of(messages)
    return [put(node, one, token, digests) for node, one in zip(network.nodes, messages, strict=True)]


def test_each_node_spends_the_token_in_its_own_database(network, tokened):
    messages = messages_of(tokened)
    token = token_for(tokened, messages)
    for status in (201, 200):
        assert [one.status_code for one in put_all(network, messages, token)] == [status] * len(messages)
    for node, message in zip(network.nodes, messages_of(tokened), strict=True):
        assert kind(put(node, message)) == (401, "token-needed")


@pytest.mark.attack(2)
def test_token_is_bound_to_the_shares_at_every_node(network, tokened):
    """A node replaces all reports but one by its own, and reads that one from the sum."""
    messages, others = messages_of(tokened), messages_of(tokened)
    for response in put_all(network, messages, token_of(tokened)):
        assert kind(response) == (401, "token-invalid")
    token, digests = token_for(tokened, messages), digests_of(messages)
    second = network.nodes[1]
    report_id = messages[1].path.rpartition("/")[2]
    info = context(tokened.digest, report_id, 1)
    own = seal(tokened.protocol.nodes[1].sealing_key, info, bytes(32))
    for message, said in (
        (Message(second.url, messages[1].path, own, ""), digests),
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
    assert kind(put(second, others[1], token, digests))[1] == "token-invalid"


@pytest.mark.slow
def test_device_gets_one_token_and_sends_it_to_all_nodes(network, tmp_path, monkeypatch):
    now = [20_000 * 86_400.0]
    monkeypatch.setattr(outbox, "now", lambda: now[0])
    with Issuer() as issuer:
        study = publish(network, issuer.url)
        for name in "abc":
            collector = network.nodes[0].address.partition("#")[0]
            nodes = study.document["protocol"]["nodes"]
            device = Device(tmp_path / name, "8", collector, max_delta="0.001", nodes=nodes)
            device.consent(device.fetch("summed"))
            device.answer(study, {"hours": ANSWERS["hours"]}, "CODE")
            assert device.flush(now=True).scheduled == 1
            (queued,) = device.ledger.queued()
            now[0] = queued.due
            assert device.flush(now=True).sent == 1
    assert close_study(study, [TOKEN] * len(network.nodes)).total.questions["hours"].n == 3


def test_invite_is_rejected_for_a_tokened_secure_sum(tokened, tmp_path):
    with raises(InputError, "ticket.issuer_gives_them"):
        write_invitations(tokened, 6, str(tmp_path / "invited"))
    assert not (tmp_path / "invited").exists()
