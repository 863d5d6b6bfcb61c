"""A node deletes shares before all nodes gave their sums, or a device takes a share back later.

Attack: (by mistake) delete a node's shares once its sum is made, so that an interrupted `close` never
ends: the node: keeps its sum and serves a deleted study if its version is named; Known limit: shares that
are deleted before the sum.

Attack: Take a share back after a secure sum is closed, again and again: each node: refuses it
permanently, and answers that a share it never held is gone; the device: reports this and stops asking
once every node has answered.
"""

from __future__ import annotations

import pytest
from werkzeug.wrappers import Response

from ldp_client import Device
from ldp_client.documents.errors import TransferError
from tests.collector.commands import operate
from tests.kit.deleting import delete_study
from tests.secure_sum.conftest import TOKEN, close_study


def delete_at(node):
    collector = node.app.extensions["ldpkit"]
    deleted = delete_study(collector.database, "summed")
    # As another process sees it a little later.
    collector.current.forget("summed")
    return deleted


def answered(network, study, folder, word):
    """A device that answered, and has not sent."""
    nodes = [node.address for node in network.nodes]
    policy = {"require_consent": False, "max_delta": "0.001", "nodes": nodes}
    device = Device(folder, "8", collector=network.nodes[0].url, **policy)
    device.answer(study, {"ever": True}, word)
    return device


def test_node_keeps_its_sum_after_its_shares_are_deleted(network):
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


def test_delete_and_close_warn_that_total_becomes_impossible(network, capsys):
    """Shares are deleted after the nodes agreed on the set and before they summed it."""
    study = network.publish("ever")
    network.answer(15)
    first, last = network.nodes[0], network.nodes[2]
    last.trouble = lambda request: Response(status=403) if request["PATH_INFO"].endswith("/set") else None
    with pytest.raises(TransferError):
        close_study(study, [TOKEN])
    last.trouble = None
    operate(first.app, "delete", "summed", "--dry-run")
    assert (
        "summed is a secure sum: once shares are deleted at this node, its total can no longer be made"
        in capsys.readouterr().err
    )
    delete_at(first)
    with pytest.raises(
        TransferError, match=rf"{first.url} .*deleted at this node .* has no sum any more .* says why"
    ):
        close_study(study, [TOKEN])


def test_late_withdrawal_ends_once_all_nodes_refused_it(network, tmp_path):
    study = network.publish("ever")
    network.answer(14)
    device = answered(network, study, tmp_path / "device", network.invitations.pop())
    assert device.flush().sent == 1
    close_study(study, [TOKEN])
    device.withdraw(study.id)
    away = network.nodes[2]
    away.trouble = lambda _request: Response(status=403)
    # One that may still hold the share, and let it go, is asked again.
    assert device.flush(attempts=1).undeleted == 1
    away.trouble = None
    flushed = device.flush()
    assert (flushed.undeleted, flushed.deleted) == (0, 0)
    assert "can no longer be taken back: " in flushed.refused[0]
    for node in network.nodes:
        node.stop()
    last = device.flush(attempts=1)
    assert (last.undeleted, last.refused) == (0, [])


def refused_device(network, study, folder, word):
    """A device that answered with a used invitation: no node took its share."""
    device = answered(network, study, folder, word)
    flushed = device.flush(attempts=1)
    assert (flushed.sent, flushed.waiting) == (0, 1)
    return device


def test_late_withdrawal_of_unsent_share_counts_as_deleted(network, tmp_path):
    study = network.publish("ever")
    word = network.invitations[-1]
    network.answer(15)
    device = refused_device(network, study, tmp_path / "device", word)
    close_study(study, [TOKEN])
    device.withdraw(study.id)
    flushed = device.flush(attempts=1)
    assert (flushed.deleted, flushed.undeleted, flushed.refused) == (1, 0, [])


def test_withdrawal_of_a_summed_and_deleted_share_is_refused(network, tmp_path):
    study = network.publish("ever")
    network.answer(14)
    device = answered(network, study, tmp_path / "device", network.invitations.pop())
    assert device.flush().sent == 1
    close_study(study, [TOKEN])
    for node in network.nodes:
        delete_at(node)
    device.withdraw(study.id)
    flushed = device.flush(attempts=1)
    assert (flushed.deleted, len(flushed.refused)) == (0, 1)
