"""Nodes accept invitation lists for another order of nodes than the published one: no device is admitted.

Defence: The node: refuses such a list.
"""

from __future__ import annotations

import os
from pathlib import Path

from collector.operator.inviting import take_list, write_invitations
from ldp_client.documents.errors import InputError
from schemas import Study
from tests.kit.errors import raises


def lists_of(study, folder):
    """What each node's operator is given."""
    return [Path(path).read_text() for _, path in write_invitations(study, 20, os.fspath(folder / "invited"))]


def take(network, texts):
    """Each at its own node, whatever its place."""
    for node, text in zip(network.nodes, texts, strict=True):
        with node.app.extensions["ldpkit"].database.write() as session:
            take_list(session, "summed", text, b"", node.keys.fragment, "ann")


def test_invitation_list_for_another_node_is_refused(network, tmp_path):
    study = network.publish("ever")
    protocol = study.document["protocol"]
    turned = Study({**study.document, "protocol": {**protocol, "nodes": protocol["nodes"][::-1]}})
    texts = lists_of(turned, tmp_path)[::-1]
    with raises(InputError, "ticket.list_of_other_place", "node 3 of summed", "node 1"):
        take(network, texts)


def test_invitation_lists_of_published_study_are_accepted(network, tmp_path):
    take(network, lists_of(network.publish("ever"), tmp_path))
