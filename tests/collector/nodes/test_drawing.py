"""No sender, closer or node chooses the devices of a secure sum: all nodes draw them together."""

import os
from base64 import b64decode
from dataclasses import replace
from hashlib import sha256

import pytest

from collector.nodes.drawing import Drawing, Statement, set_digest, split_ids
from collector.nodes.keys import NodeKeys
from ldp_client.documents.errors import StatementError
from tests.kit.answers import problem
from tests.kit.secure_sum import FEWEST, close_study, tokened_study

KEYS = [NodeKeys.generate() for _ in range(3)]
N = 16


def study_of(devices, max_faulty):
    nodes = [f"https://{name}.example#{one.fragment}" for name, one in zip("abc", KEYS)]
    return tokened_study("ever", nodes=nodes, devices=devices, max_faulty=max_faulty)


def drawn(study, ids, nonces):
    """The set that nodes draw that all hold the same shares."""
    said = []
    for place, (one, nonce) in enumerate(zip(KEYS, nonces)):
        subject = ("draw", study.id, study.digest, place, len(ids), set_digest(ids))
        said.append(Statement(*subject, sha256(nonce).hexdigest()).signed(one.signing))
    return Drawing.of(said, nonces, [ids] * len(KEYS)).chosen(study)


@pytest.mark.attack(2)
def test_small_ids_are_drawn_as_often_as_others():
    """Someone sends many shares with small ids, so that one honest device is alone in the sum."""
    study = study_of(N, N - 3)
    small = {bytes(12) + os.urandom(4) for _ in range(N)}
    ids = sorted(small | {b"\xff" + os.urandom(15) for _ in range(N)})
    taken = sum(len(small & set(drawn(study, ids, [os.urandom(32) for _ in KEYS]))) for _ in range(100))
    # Hypergeometric: mean 8 and sd 1.44 a drawing; 6 sd of the sum of 100.
    assert abs(taken - 100 * N / 2) < 6 * 1.44 * 100**0.5


@pytest.mark.attack(2)
def test_one_honest_nonce_changes_drawn_set():
    """All nodes but one show nonces of their choice."""
    study, ids = study_of(N, 0), sorted(os.urandom(16) for _ in range(4 * N))
    found = {set_digest(drawn(study, ids, [bytes(32), bytes(32), os.urandom(32)])) for _ in range(20)}
    assert len(found) == 20


@pytest.mark.attack(2)
def test_nonce_is_revealed_after_all_commitments_for_one_list(network):
    """A node that has seen another's nonce commits again to a better one."""
    network.publish("ever")
    network.answer(4)
    honest = network.nodes[0]
    for node in network.nodes:
        node.post("/close")
    answers = [node.post("/commitment").get_json() for node in network.nodes]
    said = [answer["statement"] for answer in answers]
    for wrong in ([], said[:2], [said[1], said[0], said[2]]):
        assert problem(honest.post("/nonce", json={"commitments": wrong})) == (422, "statement-invalid")
    shown = [node.post("/nonce", json={"commitments": said}).get_json()["nonce"] for node in network.nodes]
    statement = Statement.from_document(said[2])
    other = replace(statement, signature=b"", total=sha256(bytes(32)).hexdigest())
    again = [*said[:2], other.signed(network.nodes[2].keys.signing).to_document()]
    honest.restart()
    assert problem(honest.post("/nonce", json={"commitments": again})) == (409, "set-conflict")
    assert honest.post("/nonce", json={"commitments": said}).status_code == 200
    assert honest.post("/commitment").get_json() == answers[0]
    lists = [split_ids(b64decode(answer["ids"])) for answer in answers]
    nonces = [*map(bytes.fromhex, shown[:2]), bytes(32)]
    drawing = Drawing.of([Statement.from_document(each) for each in again], nonces, lists)
    assert len(drawing.chosen(network.study)) == 4
    assert problem(honest.post("/sum", json=drawing.to_document())) == (409, "set-conflict")


def changed(drawing):
    """What a hostile closer would like: other devices, other nonces, one device at some nodes alone."""
    ids = list(drawing.held)
    yield replace(drawing, held={one: drawing.held[one] for one in ids[1:]})
    yield replace(drawing, held={**drawing.held, ids[0]: 1})
    yield replace(drawing, held=dict(sorted({**drawing.held, bytes(16): 7}.items())))
    yield replace(drawing, nonces=(bytes(32), *drawing.nonces[1:]))
    yield replace(drawing, nonces=drawing.nonces[::-1])


@pytest.mark.attack(2)
def test_hostile_closer_cannot_change_drawn_set(network):
    """The closer asks for two sums that differ by one device, or leaves out all devices but one."""
    study = network.publish("ever", devices=4, max_faulty=1)
    network.answer(6)
    drawing = network.draw()
    for change in ({"nonces": ["00" * 32] * 3}, {"ids": "not base64"}, {"holders": ""}):
        document = {**drawing.to_document(), **change}
        assert problem(network.nodes[0].post("/sum", json=document)) == (422, "statement-invalid")
    for wrong in changed(drawing):
        for node in network.nodes:
            assert problem(node.post("/sum", json=wrong.to_document())) == (422, "statement-invalid")
    chosen = drawing.chosen(study)
    assert len(chosen) == 4
    for node in network.nodes:
        answer = node.post("/sum", json=drawing.to_document()).get_json()
        said = Statement.from_document(answer["statement"])
        assert (said.devices, said.set) == (4, set_digest(chosen))
    node.restart()
    for wrong in changed(drawing):
        assert problem(node.post("/sum", json=wrong.to_document())) == (422, "statement-invalid")
    assert node.post("/sum", json=drawing.to_document()).get_json() == answer
    transcript = close_study(study).transcript
    for wrong in changed(transcript.drawing):
        with pytest.raises(StatementError):
            replace(transcript, drawing=wrong).total(study)


@pytest.mark.attack(2)
def test_node_refuses_set_with_too_few_devices(network):
    """The closer has nodes sum so few devices that the noise is smaller than stated."""
    network.publish("ever")
    network.answer(FEWEST - 1)
    # Enough shares at each node, but these reach no other one.
    for place, node in enumerate(network.nodes):
        assert node.put(network.messages()[place]).status_code == 201
    drawing = network.draw()
    assert {said.devices for said in drawing.commitments} == {FEWEST}
    for node in network.nodes:
        assert problem(node.post("/sum", json=drawing.to_document())) == (422, "statement-invalid")
