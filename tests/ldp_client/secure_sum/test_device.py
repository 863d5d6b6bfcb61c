"""A device that answers a secure sum: all shares are in the ledger before the first is sent."""

import json
from base64 import b64encode
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from werkzeug.wrappers import Response

from ldp_client import Device, Direct
from ldp_client import secure_sum as outgoing
from ldp_client.device import shares
from ldp_client.device.disclosures import disclosures_of
from ldp_client.device.outbox import Queued
from ldp_client.device.requests import GRACE_DAYS, Outcome
from ldp_client.device.shares import body_size
from ldp_client.documents.errors import RefusedError, StudyError
from schemas import Study
from tests.kit.commands import check
from tests.kit.errors import raises
from tests.kit.secure_sum import ANSWERS, CODE, close_study, tokened_study
from tests.ldp_client.devices import problem

YES = {"ever": True}
pytestmark = pytest.mark.usefixtures("hurried")


def held(network):
    counts = []
    for node in network.nodes:
        with node.app.extensions["ldpkit"].database.read() as session:
            count = "SELECT COUNT(*) FROM reports WHERE payloads != x''"
            counts.append(session.connection().exec_driver_sql(count).scalar())
    return counts


def refusing(_environment):
    return Response(status=503)


def answered(network, folder):
    """A device that answered and got its token, and has not sent."""
    nodes = [node.address for node in network.nodes]
    device = Device(folder, "8", network.nodes[0].url, max_delta="0.001", nodes=nodes)
    device.consent(device.fetch("summed"))
    device.answer(network.study, {name: ANSWERS[name] for name in network.mechanisms}, CODE)
    assert device.flush().scheduled == 1
    return device


@pytest.fixture
def device(network, tmp_path):
    network.publish("ever")
    return answered(network, tmp_path / "device")


def test_unreachable_node_gets_the_same_share_later(network, tmp_path, device):
    (before,) = device.ledger.queued()
    assert len(json.loads(before.body)) == len(before.nodes) == 3
    assert held(network) == [0, 0, 0]
    network.nodes[1].trouble = refusing
    assert device.flush(attempts=1).waiting == 1
    assert held(network) == [1, 0, 1]
    (after,) = Device(tmp_path / "device", "8").ledger.queued()
    assert after.body == before.body
    network.nodes[1].trouble = None
    assert device.flush(attempts=1).sent == 1
    assert held(network) == [1, 1, 1]


def test_sent_shares_are_deleted_at_every_node_after_another_nodes_rejection(network, device):
    media_type, invalid = problem("report-invalid", network.study.digest)
    network.nodes[1].trouble = lambda _environment: Response(invalid, 422, content_type=media_type)
    assert len(device.flush(attempts=1).refused) == 1
    network.nodes[1].trouble, network.nodes[2].trouble = None, refusing
    assert held(network) == [1, 0, 1]
    assert device.withdraw("summed") == 1
    assert device.flush(attempts=1).undeleted == 1
    assert held(network) == [0, 0, 1]
    network.nodes[2].trouble = None
    assert device.flush().deleted == 1
    assert held(network) == [0, 0, 0]


def test_share_cannot_be_withdrawn_after_the_close(network, device):
    device.flush()
    for node in network.nodes:
        node.post("/close")
    device.withdraw("summed")
    network.nodes[2].trouble = refusing
    # This node may still hold the share: it is asked again.
    assert device.flush(attempts=1).undeleted == 1
    network.nodes[2].trouble = None
    flushed = device.flush()
    assert (flushed.deleted, flushed.undeleted, len(flushed.refused)) == (0, 0, 1)
    # It was sent, and is part of the sum: no node refused it.
    assert state_of(device) == ["sent"]
    assert (device.flush().sent, device.withdraw("summed")) == (0, 1)


def state_of(device):
    (told,) = disclosures_of(device.ledger)
    return [state for state, count in told.reports.items() if count]


def lying(environment):
    """A node acknowledges every deletion, and deletes nothing."""
    if environment["REQUEST_METHOD"] != "DELETE":
        return None
    receipt = {"id": environment["PATH_INFO"].rsplit("/", 1)[1], "result": "withdrawn"}
    return Response(json.dumps(receipt), 200, content_type="application/json")


@pytest.mark.attack(11)
def test_lying_node_does_not_settle_withdrawal(network, tmp_path):
    """Two nodes have closed, and the third claims to have deleted a share that is in the sum."""
    study = network.publish("ever", devices=4, max_faulty=1)
    device, *others = (answered(network, tmp_path / name) for name in "abc")
    assert [one.flush().sent for one in (device, *others)] == [1, 1, 1]
    for node in network.nodes[:2]:
        assert node.post("/close").status_code == 200
    liar = network.nodes[2]
    liar.trouble = lying
    assert device.withdraw(study.id) == 1
    for _ in range(2):
        flushed = device.flush()
        assert (flushed.deleted, flushed.undeleted, flushed.refused) == (0, 1, [])
        kept = ", ".join(node.url for node in network.nodes[:2])
        assert f"as these nodes report: {liar.url}; kept for the sum: {kept}." in flushed.reason
    assert held(network) == [3, 3, 3]
    assert close_study(study).total.questions["ever"].n == 3
    # Its secret is here still: now that all are closed, they say so.
    liar.trouble = None
    assert len(device.flush().refused) == 1
    assert state_of(device) == ["sent"]


@pytest.mark.parametrize(
    ("closes", "state"),
    [("", "kept"), (date.today(), "kept"), (date.today() - timedelta(GRACE_DAYS + 1), "refused")],
)
def test_withdrawal_ends_30_days_after_last_day(monkeypatch, closes, state):
    nodes = " ".join(f"https://{name}.example" for name in "abc")
    queued = Queued("00" * 16, nodes, "summed", "", secret="00" * 16, closes=str(closes))
    said = iter([Outcome("sent"), Outcome("refused", "kept"), Outcome("refused", "kept")])
    monkeypatch.setattr(shares, "delete_report", lambda *_: next(said))
    assert shares.delete_shares(Direct(), queued).state == state


def test_node_key_of_low_order_is_refused(tmp_path):
    """Under it anybody could read the shares; it used to be reported as a damaged ledger."""
    addresses = [f"https://{name}.example#{key * 64}{name * 64}" for name, key in (("a", "0"), ("b", "1"))]
    study = tokened_study("ever", nodes=addresses)
    device = Device(tmp_path, "8", require_consent=False, nodes=addresses)
    with raises(RefusedError, "device.node_key_weak", "0" * 64):
        device.answer(study, YES, CODE)
    assert (device.ledger.spent(), device.ledger.queued()) == ([], [])


def test_body_size_is_the_size_of_all_shares(network, tmp_path):
    study = network.publish()
    assert [len(queued.body) for queued in answered(network, tmp_path).ledger.queued()] == [body_size(study)]


@pytest.mark.attack(7)
def test_too_large_secure_sum_is_rejected_and_not_published(network, tmp_path, capsys):
    """A sum asks for more shares than devices send: base64 adds a third to 8 bytes a number."""
    document = network.publish("fruit").document
    (asked,) = document["questions"]

    def of_choices(count, ids):
        questions = [{**asked, "id": name, "choices": {"count": count}} for name in ids]
        return Study({**document, "questions": questions})

    study = of_choices(60_000, "ab")
    assert check(tmp_path, study) == 3
    assert str(body_size(study)) in capsys.readouterr().err
    node = network.nodes[0]
    assert node.publish(study).status_code == 422
    # A sum published by an earlier release must not keep the node's other sums waiting.
    ready = replace(node.app.extensions["ldpkit-node"], body_limit=2 << 20)
    ready.check_size(study)
    with raises(StudyError, "study.shares_too_large", "8048", field="questions"):
        replace(ready, body_limit=1000).check_size(of_choices(1000, "a"))


def test_device_stores_no_share_in_clear(network, tmp_path, monkeypatch):
    """The ledger contains no vector and no seed, in any encoding, before or after sending."""
    seen, split = [], outgoing.split
    monkeypatch.setattr(
        outgoing, "split", lambda vector, *rest: seen.extend([vector, *split(vector, *rest)]) or seen[1:]
    )
    study = network.publish("ever")
    device = answered(network, tmp_path / "device")
    kept = Path(device.ledger.path).read_bytes()
    assert device.flush().sent == 1
    kept += Path(device.ledger.path).read_bytes()
    assert len(seen) == 4
    assert study.id.encode() in kept
    for secret in seen:
        for spelling in (secret, secret.hex().encode(), b64encode(secret).rstrip(b"=")):
            assert spelling not in kept
