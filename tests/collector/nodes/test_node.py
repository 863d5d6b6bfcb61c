"""One node: requests that it accepts, and requests that it rejects."""

import json
from dataclasses import replace

import pytest

from collector import create_app
from collector.keys import Role, add_key
from collector.nodes import node as nodes
from collector.nodes.app import create_node_app
from collector.nodes.drawing import Statement
from collector.nodes.keys import NodeKeys
from collector.nodes.summing import Opener
from ldp_client import Device
from ldp_client.core.tokens import header_of
from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.secure_sum import SHARES, context, seal
from schemas import Study
from tests.kit import secure_sum
from tests.kit.answers import problem
from tests.kit.errors import raises
from tests.ldp_client.issuers import channel_of, keys, token_of


@pytest.mark.attack(4)
def test_share_is_stored_once_under_its_id_for_its_node_and_study(network):
    """A node publishes a second study and sends itself the shares of the first."""
    network.publish("ever")
    (first, for_second), second = network.messages()[:2], network.messages()
    node, other = network.nodes[0], network.nodes[2]
    assert [node.put(first).status_code for _ in range(3)] == [201, 200, 200]
    # An id names one message forever, even for a sender who can seal.
    assert problem(node.put(second[0], first.path)) == (422, "report-invalid")
    assert problem(other.put(for_second)) == (422, "report-invalid")
    assert problem(node.put(for_second)) == (422, "report-invalid")
    channel = channel_of("https://issuer.example")
    channel["tickets"]["keys"] = [{"key": keys()[1].text}]
    study = Study({**network.study.document, "id": "other", "channel": channel})
    assert node.publish(study).status_code == 201
    assert node.put(second[0], second[0].path.replace("summed", "other")).status_code == 422


@pytest.mark.attack(11)
def test_only_a_study_that_fits_this_node_is_published_once(network, empty):
    """A node answers that a deleted study is published, while devices are told that it is gone."""
    node = network.nodes[0]
    host, _, fragment = node.address.partition("#")
    fits = [each.address for each in network.nodes]
    for study, said in (
        (secure_sum.tokened_study("ever"), "does not name"),
        (secure_sum.tokened_study("ever", nodes=[node.address, f"{host}/again#{fragment}"]), "twice"),
        (secure_sum.tokened_study("ever", nodes=fits, devices=1 << 22), "body_limit"),
        (secure_sum.build_study("ever", nodes=fits), "without tokens"),
    ):
        response = node.publish(study)
        assert problem(response) == (422, "study-invalid")
        assert said in response.get_json()["detail"]
    study = network.publish("ever")
    assert node.publish(study).status_code == 200
    assert problem(node.publish(Study({**study.document, "version": 2}))) == (409, "study-conflict")
    assert problem(empty.publish(study)) == (422, "study-invalid")
    secure_sum.delete_at(node)
    assert problem(node.publish(study)) == (410, "study-deleted")


def test_a_node_before_and_after_its_close(network):
    """Sets and sums come after it, shares and withdrawals before it; a withdrawn share is not taken again."""
    network.publish("ever")
    ((gone, *_), (first, *_), *_) = network.answer(secure_sum.FEWEST)
    late, node = network.messages()[0], network.nodes[0]
    client = node.app.test_client()
    assert node.get("/sum").get_json() == {"shares": secure_sum.FEWEST}
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
    assert node.post("/commitment").get_json()["statement"]["devices"] == secure_sum.FEWEST - 1


def test_server_does_not_start_with_a_wrong_node_key(network, tmp_path):
    """With other keys or none, devices would drop the shares of open studies."""
    study = network.publish("ever")
    network.answer(secure_sum.FEWEST)
    node, other = network.nodes[0], tmp_path / "other.key"
    NodeKeys.generate().save(other)
    settings = {"database": f"sqlite:///{node.database}", "token": secure_sum.TOKEN}
    for _ in range(2):
        node.stop()
        with raises(InputError, "settings.study_does_not_fit_node", "summed"):
            create_node_app(settings, key_file=other)
        with raises(InputError, "settings.node_key_missing", "summed", "start a node"):
            create_app(settings)
        node.start()
        # Closed and not summed yet: it still needs a node, with the keys that the shares were sealed to.
        node.post("/close")
    secure_sum.close_study(study)
    node.stop()
    create_app(settings).extensions["ldpkit"].close()


@pytest.mark.attack(14)
def test_node_keys_have_no_delete_rights(network):
    """With a key of every node, an aggregator chooses devices until one answer is isolated."""
    network.publish("ever")
    node = network.nodes[0]
    with node.app.extensions["ldpkit"].database.write() as session:
        made = [add_key(session, role.value, role, ["summed"]) for role in Role]
        made.append(add_key(session, "all", Role.OPERATE))
    client, path = node.app.test_client(), "/v1/studies/summed"
    for key in made:
        headers = {"Authorization": f"Bearer {key}"}
        expired = client.post(f"{path}/expire", json={"before": "2026-01-01"}, headers=headers)
        assert (expired.status_code, client.delete(path, headers=headers).status_code) == (403, 403)
    assert client.get(path).status_code == 200


@pytest.mark.attack(13)
def test_database_log_and_answers_contain_no_share_in_clear(network, caplog):
    """Someone reads the databases, logs and answers of all nodes, but not their keys."""
    network.publish("ever")
    sent = network.answer(secure_sum.FEWEST)
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


@pytest.mark.attack(14)
def test_node_cannot_delete_share_at_other_node(network):
    """A node, who sees the ids, tries to delete a device's share at another node."""
    study = network.publish("ever")
    report, messages = secure_sum.shares_of(study, {"ever": True})
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


def test_device_refuses_a_sum_that_takes_shares_without_tokens(network, tmp_path):
    """Anyone could send many shares, and so choose whom the person's answer is summed with."""
    nodes = [node.address for node in network.nodes]
    device = Device(tmp_path, "8", max_delta="0.001", require_consent=False, nodes=nodes)
    with raises(RefusedError, "device.sum_without_tokens"):
        device.answer(secure_sum.build_study("ever", nodes=nodes), {"ever": True})
    assert device.ledger.spent() == []


@pytest.mark.attack(2)
def test_token_is_bound_to_the_shares_at_every_node(network):
    """A node replaces all reports but one by its own, and reads that one from the sum."""
    study = network.publish("hours", devices=4, max_faulty=1)
    messages, others = network.messages(), network.messages()
    for node, message in zip(network.nodes, messages, strict=True):
        foreign = {**message.headers, "Authorization": header_of(token_of(study))}
        for headers, refused in (({}, "ticket-needed"), (foreign, "ticket-invalid")):
            assert problem(node.put(replace(message, headers=headers))) == (401, refused)
    second, mine, other = network.nodes[1], messages[1], others[1]
    digests, theirs = mine.headers[SHARES], other.headers[SHARES]
    info = context(study.digest, mine.path.rpartition("/")[2], 1)
    own = seal(study.protocol.nodes[1].sealing_key, info, bytes(32))
    for message, said in (
        (replace(mine, body=own), digests),
        (other, digests),
        (other, theirs),
        (mine, theirs),
        (mine, ""),
        (mine, digests[:-2]),
        (mine, digests + "00" * 32),
        (mine, digests[64:128] + digests[64:]),
    ):
        headers = {**mine.headers, SHARES: said}
        assert problem(second.put(replace(message, headers=headers)))[0] in (401, 422)
    assert second.put(mine).status_code == 201
    assert problem(second.put(replace(other, headers=mine.headers)))[1] == "ticket-invalid"


def test_concurrent_closers_get_the_same_commitment(network, monkeypatch):
    """The second closer looked before the first commitment was stored."""
    network.publish("ever")
    network.answer(15)
    node = network.nodes[0]
    assert node.post("/close").status_code == 200
    first = node.post("/commitment").get_json()
    find_part, looked = nodes.find_part, []

    def late(session, study, keep=False):
        looked.append(study)
        return find_part(session, study, keep) if len(looked) > 1 else None

    monkeypatch.setattr(nodes, "find_part", late)
    second = node.post("/commitment")
    assert (second.status_code, second.get_json()) == (200, first)
    assert len(looked) == 2
