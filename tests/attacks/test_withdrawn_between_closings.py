"""Withdraw while a sum is closed at some of its nodes: the device says that it is in the sum for good."""

import pytest

from ldp_client.device.told import told_by
from tests.secure_sum.conftest import ANSWERS, TOKEN, close_study
from tests.secure_sum.test_device import device_of, held


def answered(network, tmp_path, study, name):
    device = device_of(network, tmp_path / name)
    device.answer(study, {"ever": ANSWERS["ever"]}, network.invitations.pop())
    assert device.flush().sent == 1
    return device


@pytest.mark.parametrize("closed", [1, 2])
def test_one_node_that_deletes_its_share_leaves_the_person_out(network, tmp_path, closed):
    study = network.publish("ever", clients=4, tolerate=1)
    devices = [answered(network, tmp_path, study, name) for name in "abcd"]
    for node in network.nodes[:closed]:
        assert node.post("/close").status_code == 200
    assert devices[0].withdraw(study.id) == 1
    flushed = devices[0].flush()
    assert (flushed.deleted, flushed.undeleted, flushed.refused) == (1, 0, [])
    assert held(network) == [4] * closed + [3] * (3 - closed)
    (told,) = told_by(devices[0].ledger)
    assert told.reports == {"sent": 0, "waiting": 0, "refused": 0, "being_deleted": 0}
    assert close_study(study, [TOKEN]).total.questions["ever"].n == 3


def test_while_one_has_not_spoken_it_is_asked_again(network, tmp_path):
    study = network.publish("ever")
    device = answered(network, tmp_path, study, "a")
    network.nodes[0].post("/close")
    network.nodes[2].stop()
    device.withdraw(study.id)
    assert device.flush(attempts=1).undeleted == 1
    network.nodes[2].start()
    network.nodes[2].post("/close")
    # Only now it is certain: the second node has deleted its own.
    assert device.flush(attempts=1).deleted == 1
