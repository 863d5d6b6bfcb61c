"""Nodes of a secure sum: shares of devices, and closers at once."""

from __future__ import annotations

import pytest

from collector.nodes import store as node_store
from tests.collector.answered import problem
from tests.kit.secure_sum import shares_of


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
    for node, message in zip(network.nodes, messages):
        client = node.app.test_client()
        assert problem(client.delete(message.path)) == (401, "withdrawal-unproven")
        wrong = {"LDPKit-Withdrawal": report.id}
        assert problem(client.delete(message.path, headers=wrong)) == (403, "withdrawal-refused")
        right = {"LDPKit-Withdrawal": report.secret.hex()}
        assert client.delete(message.path, headers=right).status_code < 300


@pytest.mark.attack(14)
def test_shares_do_not_contain_secret(network):
    """Look in the shares that nodes get for the secret that withdraws them."""
    study = network.publish("ever")
    report, messages = shares_of(study, {"ever": True})
    for message in messages:
        assert report.secret not in message.body
        assert report.secret.hex() not in message.path
