"""Sends many shares of one's own, or steers a closing, so that one honest device is alone in a secure sum.

Attack: Send many shares, with small ids, so that one honest device is alone in a secure sum: the nodes: a
share needs an unused invitation, another word at each node, or a token that was made for the device's own
shares alone (`tests/secure_sum/test_tokens.py`); the set is drawn with nonces that all nodes committed to
after the close.

Attack: Make used invitations to a secure sum good again, with a node's list that is taken in a second time:
the node: remembers each list. Known limit: a list that its operator changed.

Attack: (by mistake) take in another node's list, so that no invited device gets in: the node: it takes the
list that names its address and keys.

Attack: Close a secure sum over devices of one's choice, or for one node over others: each node: it confirms
no set but the drawn one; `ldpkit node verify` repeats the drawing.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from hashlib import sha256

import pytest

from collector import create_app
from collector.operator.inviting import disable, list_text, node_hashes, take_list
from collector.remote.client import RefusalError
from collector.secure_sum.drawing import Drawing
from collector.secure_sum.statements import Statement, set_digest
from collector.secure_sum.transcript import Transcript
from collector.storage.invitations import FEWEST_TOGETHER
from collector.storage.upkeep import Upkeep, utc_today
from ldp_client import Device
from ldp_client.documents.errors import InputError, RefusedError, StatementError
from ldp_client.secure_sum.messages import node_invitation
from ldpkit.cli import main
from tests.collector.commands import operate
from tests.kit.errors import raises
from tests.secure_sum.conftest import TOKEN, build_study, close_study, shares_of
from tests.statistics import seed_the_system

SMALL = "00" * 12
N = 16


def kind(response):
    return response.status_code, response.get_json(force=True)["type"].removeprefix("urn:ldpkit:problem:")


def signed(network, place, ids, nonce):
    """What a node that an attacker runs commits to."""
    node = network.nodes[place]
    study = network.study
    said = ("draw", study.id, study.digest, place, len(ids), set_digest(ids), sha256(nonce).hexdigest())
    return Statement(*said).signed(node.keys.signing)


def test_share_needs_its_own_unused_invitation(network):
    study = network.publish("ever")
    node, other = network.nodes[:2]
    _, first = shares_of(study, {"ever": True}, "summed-1")
    _, second = shares_of(study, {"ever": True}, "summed-1")
    _, stranger = shares_of(study, {"ever": True}, "of-nobody")
    assert kind(node.put(stranger[0])) == (403, "invitation-needed")
    assert node.put(first[0]).status_code == 201
    assert kind(node.put(second[0])) == (403, "invitation-needed")
    # What a node was shown lets nothing in at another one, and the list that it keeps nothing at all.
    second[1].invitation = first[0].invitation
    assert kind(other.put(second[1])) == (403, "invitation-needed")
    second[1].invitation = sha256(node_invitation("summed-2", 1).encode()).hexdigest()
    assert kind(other.put(second[1])) == (403, "invitation-needed")


def test_secure_sum_cannot_be_opened_to_all(network):
    network.publish("ever")
    with network.nodes[0].app.extensions["ldpkit"].database.write() as session:
        with raises(InputError, "ticket.disable_secure_sum"):
            disable(session, "summed", "ann")
        whose = "# invitations to summed at https://a, node 1\n"
        for text in ("", "word", "00" * 32, whose, f"{whose}{'00' * 31}", f"{whose}{'00' * 32}\n11"):
            with raises(InputError, "ticket.not_a_list"):
                take_list(session, "summed", text, b"", "", "ann")
        with raises(InputError, "ticket.list_of_other_study", "summed"):
            take_list(session, "summed", list_text("other", "https://a", 0, [b"1" * 32]), b"", "", "ann")


def test_importing_list_twice_does_not_renew_used_invitations(network):
    """This also holds after the daily upkeep has forgotten which invitations were used."""
    url = network.publish("ever").protocol.nodes[0].url
    node = network.nodes[0]
    database, keys = node.app.extensions["ldpkit"].database, node.keys.fragment
    words = [f"word-{person}" for person in range(FEWEST_TOGETHER)]
    text = list_text("summed", url, 0, node_hashes(words, 0))
    with database.write() as session:
        assert take_list(session, "summed", text, b"", keys, "ann") == f"10 invitations taken, of node {url}"
    for word in words:
        message = network.messages()[0]
        message.invitation = node_invitation(word, 0)
        assert node.put(message).status_code == 201
    for settled in (False, True):
        if settled:
            Upkeep(database, utc_today, b"").run(utc_today(), even_if_done=True)
        with raises(InputError, "ticket.list_taken_before"), database.write() as session:
            take_list(session, "summed", text, b"", keys, "ann")
    again = network.messages()[0]
    again.invitation = node_invitation(words[0], 0)
    assert kind(node.put(again)) == (403, "invitation-needed")


def with_invitation_key(node):
    """The node's application with the setting that taking a list needs."""
    settings = {"database": f"sqlite:///{node.database}", "token": TOKEN}
    return create_app({**settings, "invitation_key": "the key of this place"}, node_key=str(node.key_file))


def test_node_rejects_list_of_other_node(network, tmp_path):
    """With another node's list, people with invitations to this node would be kept out."""
    study = network.publish("ever")
    listed = tmp_path / "node-2.txt"
    listed.write_text(list_text("summed", study.protocol.nodes[1].url, 1, node_hashes(["word"], 1)))
    node, other = network.nodes[:2]
    with pytest.raises(RefusalError, match="other keys than this node"):
        operate(with_invitation_key(node), "invite", "summed", "--file", str(listed))
    text = list_text("summed", study.protocol.nodes[0].url, 0, node_hashes(["word"], 0))
    listed.write_text(text)
    with pytest.raises(RefusalError, match="other keys than this node"):
        operate(with_invitation_key(other), "invite", "summed", "--file", str(listed))
    with node.app.extensions["ldpkit"].database.write() as session:
        assert take_list(session, "summed", text, b"", node.keys.fragment, "ann").startswith(
            "1 invitation taken"
        )


def test_device_without_invitation_sends_nothing(tmp_path):
    study = build_study("ever")
    nodes = study.document["protocol"]["nodes"]
    device = Device(tmp_path, "8", max_delta="0.001", require_consent=False, nodes=nodes)
    with raises(RefusedError, "device.sum_uninvited"):
        device.answer(study, {"ever": True})
    assert device.ledger.spent() == []


def test_small_ids_are_drawn_as_often_as_others(network, monkeypatch):
    """The set used to be the first N ids in order, which senders chose. Here 16 of 32 ids are small."""
    seed_the_system(monkeypatch, "small ids")
    study = network.publish("ever", devices=N, max_faulty=N - 3)
    small = {bytes.fromhex(SMALL) + os.urandom(4) for _ in range(N)}
    ids = sorted(small | {b"\xff" + os.urandom(15) for _ in range(N)})
    drawn = 0
    for _ in range(200):
        nonces = [os.urandom(32) for _ in network.nodes]
        said = [signed(network, place, ids, nonce) for place, nonce in enumerate(nonces)]
        drawn += len(small & set(Drawing.of(said, nonces, [ids] * 3).chosen(study)))
    # Hypergeometric: mean 8 and sd 1.44 a drawing; 6 sd of the sum of 200.
    assert abs(drawn - 200 * N / 2) < 6 * 1.44 * 200**0.5


def test_one_honest_nonce_changes_drawn_set(network):
    study = network.publish("ever", devices=N, max_faulty=0)
    ids = sorted(os.urandom(16) for _ in range(4 * N))
    fixed = [bytes(32), bytes(32)]
    found = set()
    for _ in range(20):
        nonces = [*fixed, os.urandom(32)]
        said = [signed(network, place, ids, nonce) for place, nonce in enumerate(nonces)]
        found.add(set_digest(Drawing.of(said, nonces, [ids] * 3).chosen(study)))
    assert len(found) == 20


def test_nonce_is_revealed_after_all_commitments_for_one_list(network):
    """A node that has seen another's nonce cannot commit again to a better one."""
    network.publish("ever")
    network.answer(15)
    honest, hostile = network.nodes[0], 2
    for node in network.nodes:
        node.post("/close")
    assert kind(honest.post("/nonce", json={"commitments": []})) == (422, "statement-invalid")
    said = [node.post("/commitment").get_json() for node in network.nodes]
    assert kind(honest.post("/nonce", json={"commitments": said[:2]})) == (422, "statement-invalid")
    swapped = [said[1], said[0], said[2]]
    assert honest.post("/nonce", json={"commitments": swapped}).status_code == 422
    assert honest.post("/nonce", json={"commitments": said}).status_code == 200
    ids = [bytes.fromhex(said[0]["set"])[:16]]
    again = [*said[:hostile], signed(network, hostile, ids, bytes(32)).to_document()]
    honest.stop()
    honest.start()
    assert kind(honest.post("/nonce", json={"commitments": again})) == (409, "set-conflict")
    assert honest.post("/nonce", json={"commitments": said}).status_code == 200
    assert honest.post("/commitment").get_json() == said[0]


@pytest.fixture
def drawn(network):
    network.publish("ever", devices=15, max_faulty=3)
    network.answer(18)
    return network, network.draw()


def changed(drawing):
    """What a hostile closer would like: other devices, other nonces, one device at some nodes alone."""
    ids = list(drawing.held)
    yield replace(drawing, held={one: drawing.held[one] for one in ids[1:]})
    yield replace(drawing, held={**drawing.held, ids[0]: 1})
    yield replace(drawing, held=dict(sorted({**drawing.held, bytes(16): 7}.items())))
    yield replace(drawing, nonces=(bytes(32), *drawing.nonces[1:]))
    yield replace(drawing, nonces=drawing.nonces[::-1])


def test_hostile_closer_cannot_change_drawn_set(drawn):
    network, drawing = drawn
    for wrong in changed(drawing):
        for node in network.nodes:
            assert kind(node.post("/set", json=wrong.to_document())) == (422, "statement-invalid")
    for node in network.nodes:
        assert node.post("/set", json=drawing.to_document()).status_code == 200


def test_the_transcript_shows_how_the_set_was_drawn(drawn, tmp_path, capsys):
    network, _ = drawn
    transcript = close_study(network.study, [TOKEN]).transcript
    for wrong in changed(transcript.drawing):
        with pytest.raises(StatementError):
            replace(transcript, drawing=wrong).total(network.study)
    old = {**json.loads(transcript.to_json()), "format": "ldpkit.transcript/1"}
    with pytest.raises(StatementError):
        Transcript.from_json(json.dumps(old))
    (tmp_path / "study.json").write_text(network.study.to_json())
    (tmp_path / "total.json").write_text(transcript.to_json())
    assert main(["node", "verify", str(tmp_path / "study.json"), str(tmp_path / "total.json")]) == 0
    assert "held the shares of 18, 18, 18 devices" in capsys.readouterr().out


def test_invite_command_writes_words_for_people_and_nodes(network, tmp_path, capsys):
    """The guide's commands write one word for each person, and for each node a list that only it can use."""
    study = network.publish("ever")
    (tmp_path / "study.json").write_text(study.to_json())
    out = tmp_path / "invited"
    command = ["node", "invite", str(tmp_path / "study.json"), "--count", "20", "--out", str(out)]
    assert main(command) == 0
    assert capsys.readouterr().out.count("ldpkit invite summed --file") == 3
    assert main(command) == 3
    word = (out / "invitations.txt").read_text().split()[0]
    assert all(word not in (out / f"node-{place}.txt").read_text() for place in (1, 2, 3))
    for place, node in enumerate(network.nodes):
        with node.app.extensions["ldpkit"].database.write() as session:
            text = (out / f"node-{place + 1}.txt").read_text()
            said = take_list(session, "summed", text, b"", node.keys.fragment, "ann")
            assert said == f"20 invitations taken, of node {study.protocol.nodes[place].url}"
    _, messages = shares_of(study, {"ever": True}, word)
    assert [node.put(message).status_code for node, message in zip(network.nodes, messages)] == [201] * 3
