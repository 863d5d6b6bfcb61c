"""A relay claims that the collector's key is gone, so that people tell their contact which report is theirs.

Defence: The device: says that only the relay claims this, asks again at the next flush, and
advises to ask the contact only on a later day.
"""

import pytest

from collector.oblivious.keys import GatewayKeys
from tests.ldp_client.devices import consenting
from tests.oblivious.conftest import batched_study, send, through
from tests.oblivious.test_device import Relay

__all__ = ["send"]
KEY_GONE = b'{"type": "https://iana.org/assignments/http-problem-types#ohttp-key"}'


@pytest.fixture
def answered(tmp_path):
    """A device whose report has such a relay, its study and the relay."""
    with Relay() as relay:
        relay.answer = (400, {"Content-Type": "application/problem+json"}, KEY_GONE)
        study = batched_study()
        transport = through(relay.url, GatewayKeys.generate())
        device = consenting(tmp_path / "device", "9", "http://127.0.0.1:9", transport=transport)
        device.answer(study, {"ever": True})
        yield device, study, relay


def test_device_attributes_key_gone_to_relay_and_advises_waiting(answered, send):
    device, study, relay = answered
    assert f"{relay.url} says that the collector no longer has the key" in send(device).reason
    device.withdraw(study.id)
    said = send(device).reason
    assert f"{relay.url} says, without proof" in said
    assert said.index("on another day") < said.index("contact") < said.index("which tells them")


def test_key_gone_answer_is_retried_at_next_flush(answered, send):
    device, study, relay = answered
    send(device)
    device.withdraw(study.id)
    before = len(relay.requests)
    for _ in range(2):
        send(device)
    assert len(relay.requests) == before + 2
