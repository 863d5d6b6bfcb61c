"""A study names nodes that are one party, or any reachable service, and an honest device answers it.

Attack: Name nodes that are one party, or one's own with honest ones, or honest ones with one's own keys:
the device: all nodes must be those that its owner named, including their keys, on two hosts or more, no
key twice; without such a list no secure sum is answered.

Attack: Aim a device's requests at local services, as nodes of a study, by a redirect, or from a ledger:
the device: contacts only the addresses that its owner named, as they are spelled; a redirect stays on
host and port.
"""

from __future__ import annotations

import pytest

from collector.storage.node_keys import NodeKeys
from ldp_client import Device, Direct
from ldp_client.documents.errors import InputError, RefusedError
from ldp_client.explain import describe, odds_of
from ldp_client.secure_sum.trusted_nodes import TrustedNodes
from ldpkit.cli import main
from tests.kit.errors import raises
from tests.secure_sum.conftest import INVITATION, build_study

HONEST = [f"https://{name}.example#{NodeKeys.generate().fragment}" for name in ("university", "charity")]
FOREIGN = NodeKeys.generate().fragment
ONE_KEY = f"#{FOREIGN}"
# What a study's author would like devices to send requests to.
LOCAL = [
    "http://127.0.0.1:6379",
    "http://localhost:2375",
    "http://[::1]:9000",
    "https://192.168.1.1/admin",
    "https://10.0.0.7",
    "https://169.254.169.254/latest",
    "https://[fe80::1]",
    "https://2130706433",
    "https://0x7f.1",
    "https://[::ffff:127.0.0.1]",
]


def device_of(folder, **policy):
    return Device(folder, "8", max_delta="0.001", require_consent=False, **policy)


def refuse(device, study, code):
    with raises(RefusedError, code):
        device.answer(study, {"ever": True}, INVITATION)
    assert device.ledger.spent() == []
    assert device.ledger.queued() == []


def test_device_without_trusted_nodes_refuses_secure_sums(tmp_path):
    study = build_study("ever", nodes=HONEST)
    refuse(device_of(tmp_path), study, ("device.node_unknown", "https://university.example"))
    allowing = device_of(tmp_path, allowed_hosts=["university.example", "charity.example"])
    refuse(allowing, study, "device.node_unknown")


def test_study_with_only_trusted_nodes_is_answered(tmp_path):
    device = device_of(tmp_path, nodes=HONEST)
    device.answer(build_study("ever", nodes=HONEST), {"ever": True}, INVITATION)
    assert len(device.ledger.queued()) == 1


@pytest.mark.parametrize(
    "other", [f"https://author.example#{FOREIGN}", f"https://university.example/own#{FOREIGN}"]
)
def test_study_with_one_untrusted_node_is_refused(tmp_path, other):
    refuse(
        device_of(tmp_path, nodes=HONEST), build_study("ever", nodes=[*HONEST, other]), "device.node_unknown"
    )


def test_trusted_address_with_swapped_keys_is_refused(tmp_path):
    swapped = [HONEST[0], HONEST[1].partition("#")[0] + ONE_KEY]
    refuse(device_of(tmp_path, nodes=HONEST), build_study("ever", nodes=swapped), "device.node_keys")


@pytest.mark.parametrize("half", [slice(0, 64), slice(64, 128)])
def test_changed_sealing_or_signing_key_is_refused(tmp_path, half):
    """The sealing key reads shares; the signing key says which set was summed."""
    address, _, keys = HONEST[1].partition("#")
    changed = keys.replace(keys[half], FOREIGN[half])
    study = build_study("ever", nodes=[HONEST[0], f"{address}#{changed}"])
    refuse(device_of(tmp_path, nodes=HONEST), study, "device.node_keys")


def test_two_nodes_on_one_host_are_refused(tmp_path):
    keys = [NodeKeys.generate().fragment for _ in range(2)]
    for places in (("/a", "/b"), (":8001", ":8002"), ("", ".:443")):
        nodes = [f"https://one.example{place}#{key}" for place, key in zip(places, keys)]
        refuse(device_of(tmp_path, nodes=nodes), build_study("ever", nodes=nodes), "device.nodes_one_host")


def test_two_nodes_that_share_a_key_are_refused(tmp_path):
    sealing, signing = FOREIGN[:64], FOREIGN[64:]
    other = NodeKeys.generate().fragment
    for keys in (FOREIGN, sealing + other[64:], other[:64] + signing):
        nodes = [f"https://a.example#{FOREIGN}", f"https://b.example#{keys}"]
        refuse(device_of(tmp_path, nodes=nodes), build_study("ever", nodes=nodes), "device.nodes_one_key")


@pytest.mark.parametrize("address", LOCAL)
def test_study_with_local_address_as_node_is_refused(tmp_path, address):
    """The study is refused when it is answered, before any request is made."""
    nodes = [HONEST[0], f"{address}#{FOREIGN}"]
    study = build_study("ever", nodes=nodes)
    refuse(device_of(tmp_path, nodes=HONEST), study, "device.node_unknown")


@pytest.mark.parametrize("address", LOCAL)
def test_shares_in_ledger_are_not_sent_to_local_addresses(tmp_path, address, monkeypatch):
    """A ledger may hold shares for nodes that are no longer trusted."""
    from ldp_client.device.outbox import MOST_BYTES, Queued, enqueue

    monkeypatch.setattr(Direct, "exchange", lambda *_: pytest.fail("a request was made"))
    device = device_of(tmp_path, collector="https://collector.example", nodes=HONEST)
    with device.ledger.writing() as connection:
        there = f"{HONEST[0].partition('#')[0]} {address}"
        report = Queued("0" * 32, there, "summed", '["AA==","AA=="]', origin=device.ledger.origin)
        enqueue(connection, report, MOST_BYTES)
    flushed = device.flush(attempts=1)
    assert (flushed.sent, flushed.waiting) == (0, 1)
    assert "not trust" in flushed.reason
    with device.ledger.writing() as connection:
        connection.execute("UPDATE reports SET state = 'trying'")
    device.withdraw("summed")
    assert device.flush(attempts=1).undeleted == 1


def test_redirect_by_trusted_node_is_not_followed(network, tmp_path):
    from werkzeug.wrappers import Response

    study = network.publish("ever")
    nodes = [node.address for node in network.nodes]
    device = device_of(tmp_path, collector=network.nodes[0].url, nodes=nodes)
    device.answer(study, {"ever": True}, INVITATION)
    asked = []
    network.nodes[2].trouble = lambda environment: asked.append(environment["PATH_INFO"])
    elsewhere = f"{network.nodes[2].url}/v1/elsewhere"
    network.nodes[1].trouble = lambda _environment: Response(status=307, headers={"Location": elsewhere})
    device.flush(attempts=1)
    assert "/v1/elsewhere" not in asked
    assert len(asked) == 1


def test_invalid_list_of_trusted_nodes_is_rejected(tmp_path):
    for nodes, code in (
        (["https://a.example"], "device.node"),
        (["a.example#" + FOREIGN], "device.node"),
        ("https://a.example", "device.list"),
        ([HONEST[0]] * 2, "device.node_twice"),
    ):
        with raises(InputError, code, "nodes"):
            device_of(tmp_path, nodes=nodes)


def test_description_first_warns_that_nodes_may_be_one_party():
    study = build_study("ever", nodes=HONEST)
    first = " ".join(describe(study)[:2])
    assert "ARE ONE PARTY" in first
    assert "READ EVERY ANSWER EXACTLY" in first
    assert all(f"  {address}" in describe(study) for address in HONEST)
    assert odds_of(study, 1.0).startswith("All nodes together can read every answer exactly.")


def test_command_explains_how_to_trust_a_node(network, tmp_path, capsys):
    study = network.publish("ever")
    url = f"{network.nodes[0].url}/v1/studies/{study.id}"
    folder = str(tmp_path / "device")
    command = ["answer", url, "--set", "ever=yes", "--yes", "--folder", folder, "--invitation", "code"]
    command += ["--max-epsilon", "8"]
    assert main(command) == 3
    assert "does not trust the node http" in capsys.readouterr().err
    named = [part for node in network.nodes for part in ("--node", node.address)]
    main([*command, *named])
    assert "answered summed" in capsys.readouterr().out


def test_trusted_address_with_trailing_slash_is_accepted():
    address = HONEST[0].replace("#", "/#")
    TrustedNodes([address, HONEST[1]]).refuse_others(build_study("ever", nodes=HONEST))
