"""A collector gives each person a different address, and reads it in requests through the relay."""

import json

from ldp_client.device import clock, relayed
from ldp_client.documents.errors import TransferError
from ldp_client.oblivious.binary_http import Request
from ldp_client.oblivious.encapsulation import decapsulate
from tests.ldp_client.devices import consenting
from tests.oblivious.conftest import keys, relayed_study
from tests.portable import npm

__all__ = ["keys"]
RELAY = "https://relay.example/ldpkit"
PLACES = ("https://ada.collector.example", "https://collector.example:8443/for/bo")


def test_encapsulated_request_does_not_reveal_collector_address(tmp_path, keys, monkeypatch):
    seen = []

    def exchange(request, *_):
        received = decapsulate(keys.keys[0].private, request.data)
        found = Request.decode(received.content)
        seen.append((found.authority, found.scheme, found.path.rpartition("/")[0], found.fields))
        raise TransferError("away")

    monkeypatch.setattr(relayed, "exchange", exchange)
    study = relayed_study(RELAY, keys)
    for place in PLACES:
        device = consenting(tmp_path / place.partition("//")[2].replace("/", "-"), "9", place)
        device.answer(study, {"ever": True})
        due = device.ledger.queued()[0].due
        monkeypatch.setattr(clock, "now", lambda due=due: float(due))
        device.flush(1)
    assert len(seen) == 2
    assert seen[0] == seen[1]


def test_javascript_request_does_not_reveal_collector_address():
    said = json.loads(npm.node("inner_address.mjs", *PLACES))
    assert len(said) == 2
    assert said[0] == said[1]
