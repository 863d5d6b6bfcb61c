"""Deletes, at one node, what a secure sum was made of before all nodes gave theirs."""

from __future__ import annotations

import pytest
from werkzeug.wrappers import Response

from collector.operator.retention import delete_study
from ldp_client.documents.errors import TransferError
from tests.secure_sum.conftest import TOKEN, close_study


def delete_at(node):
    collector = node.app.extensions["ldpkit"]
    deleted = delete_study(collector.database, "summed")
    # As another process sees it a little later.
    collector.current.forget("summed")
    return deleted


def test_a_node_that_deleted_its_shares_after_its_sum_gives_it_again(network):
    study = network.publish("ever")
    network.answer(15)
    first, last = network.nodes[0], network.nodes[2]
    last.trouble = lambda request: Response(status=403) if request["PATH_INFO"].endswith("/sum") else None
    with pytest.raises(TransferError):
        close_study(study, [TOKEN])
    last.trouble = None
    assert delete_at(first) == 15
    total = close_study(study, [TOKEN]).total.to_json()
    for node in network.nodes:
        delete_at(node)
    assert close_study(study, [TOKEN]).total.to_json() == total
