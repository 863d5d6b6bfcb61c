"""A study names nodes that are one party, or any reachable service: no honest device answers it."""

import pytest

from collector.nodes.keys import NodeKeys
from ldp_client import Device, Direct
from ldp_client.device.outbox import MOST_BYTES, Queued, enqueue
from ldp_client.documents.errors import RefusedError
from ldp_client.explain import describe, odds_of
from tests.kit.errors import raises
from tests.kit.secure_sum import CODE, build_study, tokened_study

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
