"""Each node of a secure sum has a list of invitations of its own, and takes it once."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import pytest
from sqlalchemy import update

from collector.clock import utc_today
from collector.daily import Upkeep
from collector.models import StudyRow
from collector.operator.inviting import disable, list_text, node_hashes, take_list, write_invitations
from collector.storage.invitations import FEWEST_TOGETHER, Spending
from ldp_client import Device
from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.secure_sum.messages import node_invitation
from schemas import Study
from tests.collector.commands import exit_code
from tests.kit.errors import raises
from tests.secure_sum.conftest import FEWEST, TOKEN, build_study, close_study, kind, shares_of


def take(node, text, study_id="summed"):
    with node.app.extensions["ldpkit"].database.write() as session:
        return take_list(session, study_id, text, b"", node.keys.fragment, "ann")


def lists_of(study, folder):
    """The words of the people, and what each node's operator is given."""
    places = write_invitations(study, 20, os.fspath(folder / "invited"))
    words = (folder / "invited" / "invitations.txt").read_text().split()
    return words, [Path(path).read_text() for _, path in places]


@pytest.mark.attack(4)
def test_share_needs_its_own_unused_invitation(network):
    """Someone uses an invitation twice, at another node, or as the list has it."""
    study = network.publish("ever")
    node, other = network.nodes[:2]
    first, second, stranger = (
        shares_of(study, {"ever": True}, word)[1] for word in ("summed-1", "summed-1", "of-nobody")
    )
    assert kind(node.put(stranger[0])) == (403, "invitation-needed")
    assert node.put(first[0]).status_code == 201
    assert kind(node.put(second[0])) == (403, "invitation-needed")
    for word in (first[0].invitation, sha256(node_invitation("summed-2", 1).encode()).hexdigest()):
        second[1].invitation = word
        assert kind(other.put(second[1])) == (403, "invitation-needed")


def test_lists_admit_their_people_at_their_own_nodes(network, tmp_path):
    study = network.publish("ever")
    words, texts = lists_of(study, tmp_path)
    for node, text, place in zip(network.nodes, texts, study.protocol.nodes):
        assert not any(word in text for word in words)
        assert take(node, text) == f"20 invitations taken, of node {place.url}"
    messages = shares_of(study, {"ever": True}, words[0])[1]
    assert [node.put(message).status_code for node, message in zip(network.nodes, messages)] == [201] * 3


@pytest.mark.attack(4)
def test_importing_list_twice_does_not_renew_used_invitations(network):
    """Also not after the daily upkeep has forgotten which invitations were used."""
    url, node = network.publish("ever").protocol.nodes[0].url, network.nodes[0]
    words = [f"word-{person}" for person in range(FEWEST_TOGETHER)]
    text = list_text("summed", url, 0, node_hashes(words, 0))
    take(node, text)
    for word in words:
        message = network.messages()[0]
        message.invitation = node_invitation(word, 0)
        assert node.put(message).status_code == 201
    Upkeep(node.app.extensions["ldpkit"].database, utc_today, b"").run(utc_today(), even_if_done=True)
    with raises(InputError, "ticket.list_taken_before"):
        take(node, text)
    again = network.messages()[0]
    again.invitation = node_invitation(words[0], 0)
    assert kind(node.put(again)) == (403, "invitation-needed")


def test_list_of_another_node_order_or_study_is_refused(network, tmp_path):
    """With another node's list, people with invitations to this node would be kept out."""
    study, node = network.publish("ever"), network.nodes[0]
    protocol = study.document["protocol"]
    turned = Study({**study.document, "protocol": {**protocol, "nodes": protocol["nodes"][::-1]}})
    _, texts = lists_of(turned, tmp_path)
    with raises(InputError, "ticket.list_of_other_place", "node 3 of summed", "node 1"):
        take(node, texts[2])
    with raises(InputError, "ticket.list_of_other_node", network.nodes[1].url):
        take(node, list_text("summed", network.nodes[1].url, 1, node_hashes(["word"], 1)))
    with raises(InputError, "ticket.list_of_other_study", "summed"):
        take(node, list_text("other", "https://a", 0, [b"1" * 32]))
    whose = "# invitations to summed at https://a, node 1\n"
    for text in ("", "00" * 32, whose, f"{whose}{'00' * 31}"):
        with raises(InputError, "ticket.not_a_list"):
            take(node, text)


@pytest.mark.attack(2)
def test_secure_sum_takes_no_uninvited_share(network, tmp_path):
    """Someone sends a share before invitations are made, or an operator opens the sum to everybody."""
    study = network.publish("ever")
    early = Study({**study.document, "id": "early"})
    assert network.nodes[0].publish(early).status_code == 201
    share = shares_of(early, {"ever": True}, "word")[1][0]
    assert kind(network.nodes[0].put(share)) == (403, "invitation-needed")
    refused = raises(InputError, "ticket.disable_secure_sum")
    with network.nodes[0].app.extensions["ldpkit"].database.write() as session, refused:
        disable(session, "summed", "ann")
    nodes = study.document["protocol"]["nodes"]
    device = Device(tmp_path, "8", max_delta="0.001", require_consent=False, nodes=nodes)
    with raises(RefusedError, "device.sum_uninvited"):
        device.answer(study, {"ever": True})
    assert device.ledger.spent() == []


def test_too_few_invitations_are_refused(tmp_path):
    study = build_study("ever")
    with raises(InputError, "ticket.count_invalid", "15"):
        write_invitations(study, 14, os.fspath(tmp_path / "invited"))
    assert not (tmp_path / "invited").exists()


@pytest.fixture
def lost(network):
    """The second node's settings have another invitation_key than its invitations."""
    network.publish("ever")
    network.answer(FEWEST)
    node = network.nodes[1]
    with node.app.extensions["ldpkit"].database.write() as session:
        session.execute(update(StudyRow).values(spending=Spending.start(b"a key that is lost").stored))
    node.stop()
    node.start()
    return network


def test_device_spends_nothing_at_node_without_its_key(lost, tmp_path):
    addresses = [node.address for node in lost.nodes]
    options = {"require_consent": False, "nodes": addresses, "max_delta": "0.001"}
    device = Device(tmp_path / "device", "8", collector=lost.nodes[1].url, **options)
    with raises(RefusedError, "device.closed_early"):
        device.answer(device.fetch("summed"), {"ever": True}, lost.invitations.pop())
    assert device.ledger.spent() == []


def test_earlier_shares_can_be_summed_and_then_forgotten(lost, capsys):
    """The messages name a solution, and it works."""
    forget = ("invite", "summed", "--revoke-all")
    assert exit_code(lost.nodes[1].app, *forget) == 3
    assert "Restore its invitation_key" in capsys.readouterr().err
    assert close_study(lost.study, [TOKEN] * 3)
    assert exit_code(lost.nodes[1].app, *forget) == 0
