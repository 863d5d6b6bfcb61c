"""A deleted study looks published: a node answered 200, while devices got 410."""

from __future__ import annotations

from tests.attacks.test_deleted_sums import delete_at


def test_publishing_a_deleted_study_is_rejected(network):
    study = network.publish("ever")
    node = network.nodes[0]
    delete_at(node)
    answer = node.publish(study)
    assert answer.status_code == 410
    assert answer.json["type"].endswith("study-deleted")
