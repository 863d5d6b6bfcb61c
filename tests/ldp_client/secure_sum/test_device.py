"""A device in a secure sum: it trusts its own nodes alone, and stores all shares before it sends one."""

import json
from base64 import b64encode
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from werkzeug.wrappers import Response

from collector.nodes.keys import NodeKeys
from ldp_client import Device, Direct
from ldp_client import secure_sum as outgoing
from ldp_client.device import shares
from ldp_client.device.disclosures import disclosures_of
from ldp_client.device.outbox import MOST_BYTES, Queued, enqueue
from ldp_client.device.requests import GRACE_DAYS, Outcome
from ldp_client.device.shares import body_size
from ldp_client.documents.errors import RefusedError, StudyError
from ldp_client.explain import describe, odds_of
from schemas import Study
from tests.kit.commands import check
from tests.kit.errors import raises
from tests.kit.secure_sum import ANSWERS, CODE, build_study, close_study, tokened_study
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


HONEST = [f"https://{name}.example#{NodeKeys.generate().fragment}" for name in ("university", "charity")]
FOREIGN = NodeKeys.generate().fragment
SEALING, SIGNING = FOREIGN[:64], FOREIGN[64:]
ADDRESS, _, KEYS = HONEST[1].partition("#")


def device_of(folder, **policy):
    return Device(folder, "8", max_delta="0.001", require_consent=False, **policy)


def refuse(device, study, code):
    with raises(RefusedError, code):
        device.answer(study, {"ever": True}, CODE)
    assert device.ledger.spent() == []
    assert device.ledger.queued() == []


def test_study_with_only_trusted_nodes_is_answered(tmp_path):
    device = device_of(tmp_path, nodes=[HONEST[0].replace("#", "/#"), HONEST[1]])
    device.answer(tokened_study("ever", nodes=HONEST), {"ever": True}, CODE)
    assert len(device.ledger.queued()) == 1


def test_device_without_trusted_nodes_refuses_secure_sums(tmp_path):
    study = tokened_study("ever", nodes=HONEST)
    allowing = device_of(tmp_path, allowed_hosts=["university.example", "charity.example"])
    refuse(allowing, study, "device.node_unknown")
    narrow = device_of(tmp_path / "other", allowed_hosts=["university.example"], nodes=HONEST)
    refuse(narrow, study, ("device.host", "charity.example"))


@pytest.mark.attack(2)
@pytest.mark.parametrize(
    ("nodes", "code"),
    [
        ([*HONEST, f"https://author.example#{FOREIGN}"], "device.node_unknown"),
        ([*HONEST, f"https://university.example/own#{FOREIGN}"], "device.node_unknown"),
        ([HONEST[0], f"{ADDRESS}#{FOREIGN}"], "device.node_keys"),
        ([HONEST[0], f"{ADDRESS}#{SEALING}{KEYS[64:]}"], "device.node_keys"),
        ([HONEST[0], f"{ADDRESS}#{KEYS[:64]}{SIGNING}"], "device.node_keys"),
        ([f"https://one.example/a#{KEYS}", f"https://one.example/b#{FOREIGN}"], "device.nodes_one_host"),
        ([f"https://one.example:1#{KEYS}", f"https://one.example:2#{FOREIGN}"], "device.nodes_one_host"),
        ([HONEST[0], HONEST[0].replace("university", "b")], "device.nodes_one_key"),
        ([HONEST[1], f"https://b.example#{SEALING}{KEYS[64:]}"], "device.nodes_one_key"),
        ([HONEST[1], f"https://b.example#{KEYS[:64]}{SIGNING}"], "device.nodes_one_key"),
    ],
)
def test_study_whose_nodes_may_be_one_party_is_refused(tmp_path, nodes, code):
    """The author adds an own node, uses other keys, or runs all nodes at one host or under two names."""
    is_pinned = code.startswith("device.nodes_")
    device = device_of(tmp_path, nodes=nodes if is_pinned else HONEST)
    refuse(device, tokened_study("ever", nodes=nodes), code)


@pytest.mark.attack(9)
@pytest.mark.parametrize("address", ["http://127.0.0.1:6379", "https://[fe80::1]", "https://2130706433"])
def test_device_sends_nothing_to_local_addresses(tmp_path, address, monkeypatch):
    """A study names a service in the person's network as a node, or an old ledger has shares for it."""
    monkeypatch.setattr(Direct, "exchange", lambda *_: pytest.fail("a request was made"))
    device = device_of(tmp_path, collector="https://collector.example", nodes=HONEST)
    study = tokened_study("ever", nodes=[HONEST[0], f"{address}#{FOREIGN}"])
    refuse(device, study, "device.node_unknown")
    with device.ledger.writing() as connection:
        there = f"{HONEST[0].partition('#')[0]} {address}"
        report = Queued("0" * 32, there, "summed", '["AA==","AA=="]', origin=device.ledger.origin)
        enqueue(connection, report, MOST_BYTES)
    flushed = device.flush(attempts=1)
    assert (flushed.sent, flushed.waiting) == (0, 1)
    with device.ledger.writing() as connection:
        connection.execute("UPDATE reports SET state = 'trying'")
    device.withdraw("summed")
    assert device.flush(attempts=1).undeleted == 1


def test_description_first_warns_that_nodes_may_be_one_party():
    study = build_study("ever", nodes=HONEST)
    first = " ".join(describe(study)[:2])
    assert "ARE ONE PARTY" in first
    assert "READ EVERY ANSWER EXACTLY" in first
    assert all(f"  {address}" in describe(study) for address in HONEST)
    assert odds_of(study, 1.0).startswith("All nodes together can read every answer exactly.")


def test_node_key_of_low_order_is_refused(tmp_path):
    """Under it anybody could read the shares; it used to be reported as a damaged ledger."""
    nodes = [f"https://{name}.example#{key * 64}{name * 64}" for name, key in (("a", "0"), ("b", "1"))]
    study = tokened_study("ever", nodes=nodes)
    refuse(device_of(tmp_path, nodes=nodes), study, ("device.node_key_weak", "0" * 64))
