"""One node: requests that it accepts, and requests that it rejects."""

import json
import re
from hashlib import sha256

import pytest

from collector import create_app
from collector.keys import Role, add_key
from collector.nodes import store as node_store
from collector.nodes.app import OPERATIONS, create_node_app
from collector.nodes.keys import NodeKeys
from collector.nodes.statements import Statement
from collector.nodes.summing import Opener
from ldp_client import Device
from ldp_client.core.tokens import header_of
from ldp_client.device import outbox
from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.secure_sum import SHARES, context, seal, shares_nonce
from schemas import Study
from tests.kit.answers import problem
from tests.kit.errors import raises
from tests.kit.secure_sum import (
    ANSWERS,
    FEWEST,
    TOKEN,
    Share,
    build_study,
    close_study,
    delete_at,
    shares_of,
    tokened_study,
)
from tests.ldp_client.issuers import channel_of, keys, token_of


def test_share_is_stored_once_under_its_id_at_its_node(network):
    network.publish("ever")
    (first, for_second), second = network.messages()[:2], network.messages()
    node, other = network.nodes[0], network.nodes[2]
    assert [node.put(first).status_code for _ in range(3)] == [201, 200, 200]
    # An id names one message forever, even for a sender who can seal.
    assert problem(node.put(second[0], first.path)) == (422, "report-invalid")
    assert problem(other.put(for_second)) == (422, "report-invalid")
    assert problem(node.put(for_second)) == (422, "report-invalid")


@pytest.mark.attack(4)
def test_a_share_cannot_be_replayed_in_another_study(network):
    """A node publishes a second study and sends itself the shares of the first."""
    network.publish("ever")
    message = network.messages()[0]
    channel = channel_of("https://issuer.example")
    channel["tickets"]["keys"] = [{"key": keys()[1].text}]
    other = Study({**network.study.document, "id": "other", "channel": channel})
    assert network.nodes[0].publish(other).status_code == 201
    assert network.nodes[0].put(message, message.path.replace("summed", "other")).status_code == 422


@pytest.mark.attack(11)
def test_only_a_study_that_fits_this_node_is_published_once(network, empty):
    """A node answers that a deleted study is published, while devices are told that it is gone."""
    node = network.nodes[0]
    host, _, fragment = node.address.partition("#")
    fits = [each.address for each in network.nodes]
    for study, said in (
        (tokened_study("ever"), "does not name"),
        (tokened_study("ever", nodes=[node.address, f"{host}/again#{fragment}"]), "twice"),
        (tokened_study("ever", nodes=fits, devices=1 << 22), "body_limit"),
        (build_study("ever", nodes=fits), "without tokens"),
    ):
        response = node.publish(study)
        assert problem(response) == (422, "study-invalid")
        assert said in response.get_json()["detail"]
    study = network.publish("ever")
    assert node.publish(study).status_code == 200
    assert problem(node.publish(Study({**study.document, "version": 2}))) == (409, "study-conflict")
    assert problem(empty.publish(study)) == (422, "study-invalid")
    delete_at(node)
    assert problem(node.publish(study)) == (410, "study-deleted")


def test_a_node_before_and_after_its_close(network):
    """Sets and sums come after it, shares and withdrawals before it; a withdrawn share is not taken again."""
    network.publish("ever")
    ((gone, *_), (first, *_), *_) = network.answer(FEWEST)
    late, node = network.messages()[0], network.nodes[0]
    client = node.app.test_client()
    assert node.get("/sum").get_json() == {"shares": FEWEST}
    said = [
        Statement("draw", "summed", "0" * 64, place, 0, "0" * 64, "0" * 64).to_document() for place in (0, 1)
    ]
    drawing = {"commitments": said, "nonces": ["0" * 64, "1" * 64], "ids": "", "holders": ""}
    for path, body in (("/commitment", None), ("/nonce", {"commitments": said}), ("/sum", drawing)):
        assert problem(node.post(path, json=body)) == (409, "study-open")
    assert client.delete(gone.path, headers=node.operator).status_code == 200
    assert problem(node.put(gone)) == (410, "report-withdrawn")
    node.post("/close")
    assert node.post("/open").status_code == 404
    assert problem(node.put(late)) == (410, "study-closed")
    assert node.put(first).status_code == 200
    assert problem(client.delete(first.path, headers=node.operator)) == (409, "sum-fixed")
    assert node.post("/commitment").get_json()["statement"]["devices"] == FEWEST - 1


def test_server_does_not_start_with_a_wrong_node_key(network, tmp_path):
    """With other keys or none, devices would drop the shares of open studies."""
    study = network.publish("ever")
    network.answer(FEWEST)
    node, other = network.nodes[0], tmp_path / "other.key"
    NodeKeys.generate().save(other)
    settings = {"database": f"sqlite:///{node.database}", "token": TOKEN}
    for _ in range(2):
        node.stop()
        with raises(InputError, "settings.study_does_not_fit_node", "summed"):
            create_node_app(settings, key_file=other)
        with raises(InputError, "settings.node_key_missing", "summed", "start a node"):
            create_app(settings)
        node.start()
        # Closed and not summed yet: it still needs a node, with the keys that the shares were sealed to.
        node.post("/close")
    close_study(study, [TOKEN])
    node.stop()
    create_app(settings).extensions["ldpkit"].close()


def test_the_openapi_document_of_a_node_is_its_own(network):
    network.publish("ever")
    network.answer(FEWEST)
    node = network.nodes[0]
    routes = set()
    for rule in node.app.url_map.iter_rules():
        path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
        routes |= {(method.lower(), path) for method in rule.methods - {"HEAD", "OPTIONS", "GET"} or {"GET"}}
    assert routes == {(operation.method, operation.path) for operation in OPERATIONS}
    document = node.app.test_client().get("/openapi.json").get_json()
    assert "/v1/studies/{study_id}/sum" in document["paths"]
    for operation in OPERATIONS:
        path = operation.path.format(study_id="summed", report_id="0" * 32, name="ann")
        status = node.app.test_client().open(path, method=operation.method.upper()).status_code
        assert (status == 401) == operation.needs_key, operation.name


@pytest.mark.attack(14)
def test_node_keys_have_no_delete_rights(network):
    """With a key of every node, an aggregator chooses devices until one answer is isolated."""
    network.publish("ever")
    node = network.nodes[0]
    with node.app.extensions["ldpkit"].database.write() as session:
        made = [add_key(session, role.value, role, ["summed"]) for role in Role]
        made.append(add_key(session, "all", Role.OPERATE))
    changes = {
        ("POST", "/expire"): {"before": "2026-01-01"},
        ("DELETE", ""): None,
    }
    for (method, path), body in changes.items():
        for key in made:
            headers = {"Authorization": f"Bearer {key}"}
            client = node.app.test_client()
            answer = client.open(f"/v1/studies/summed{path}", method=method, json=body, headers=headers)
            assert answer.status_code == 403, (method, path)
    assert node.app.test_client().get("/v1/studies/summed").status_code == 200


@pytest.mark.attack(13)
def test_database_log_and_answers_contain_no_share_in_clear(network, caplog):
    """Someone reads the databases, logs and answers of all nodes, but not their keys."""
    network.publish("ever")
    sent = network.answer(FEWEST)
    drawing = network.draw()
    answers = b""
    for node in network.nodes:
        answers += node.post("/sum", json=drawing.to_document()).data
        node.stop()
    stored = b"".join(node.database.read_bytes() for node in network.nodes) + answers + caplog.text.encode()
    for index, node in enumerate(network.nodes):
        opener = Opener.of(network.study, index, node.keys.sealing)
        for messages in sent:
            share = opener.open(messages[index].path[-32:], messages[index].body)
            assert messages[index].body in stored
            assert share not in stored
            assert share.hex().encode() not in stored
    for node in network.nodes:
        assert json.loads(node.key_file.read_text())["x25519"].encode() not in stored


def test_concurrent_closers_get_the_same_commitment(network, monkeypatch):
    """The second closer looked before the first commitment was stored."""
    network.publish("ever")
    network.answer(15)
    node = network.nodes[0]
    assert node.post("/close").status_code == 200
    first = node.post("/commitment").get_json()
    find_part, looked = node_store.find_part, []

    def late(session, study, keep=False):
        looked.append(study)
        return find_part(session, study, keep) if len(looked) > 1 else None

    monkeypatch.setattr(node_store, "find_part", late)
    second = node.post("/commitment")
    assert (second.status_code, second.get_json()) == (200, first)
    assert len(looked) == 2


@pytest.mark.attack(14)
def test_node_cannot_delete_share_at_other_node(network):
    """A node, who sees the ids, tries to delete a device's share at another node."""
    study = network.publish("ever")
    report, messages = shares_of(study, {"ever": True})
    for node, message in zip(network.nodes, messages):
        assert node.put(message).status_code == 201
        assert report.secret not in message.body
        assert report.secret.hex() not in message.path
    for node, message in zip(network.nodes, messages):
        client = node.app.test_client()
        assert problem(client.delete(message.path)) == (401, "withdrawal-unproven")
        wrong = {"LDPKit-Withdrawal": report.id}
        assert problem(client.delete(message.path, headers=wrong)) == (403, "withdrawal-refused")
        right = {"LDPKit-Withdrawal": report.secret.hex()}
        assert client.delete(message.path, headers=right).status_code < 300


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
        assert problem(put(node, message)) == (401, "ticket-needed")


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
        assert problem(response) == (401, "ticket-invalid")
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
        assert problem(put(second, message, token, said))[0] in (401, 422)
    assert put(second, messages[1], token, digests).status_code == 201
    assert problem(put(second, others[1], token, digests))[1] == "ticket-invalid"


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
