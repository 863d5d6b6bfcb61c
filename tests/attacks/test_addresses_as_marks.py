"""A collector gives each person a different address, and reads it in requests through the relay."""

import json

from ldp_client.device import http
from ldp_client.documents.errors import TransferError
from ldp_client.oblivious.binary_http import Request
from ldp_client.oblivious.encapsulation import decapsulate
from schemas import Study
from tests import studies
from tests.ldp_client.devices import consenting
from tests.oblivious.conftest import keys, through
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

    monkeypatch.setattr(http, "exchange", exchange)
    study = Study(studies.document(studies.YES_NO))
    for place in PLACES:
        folder = tmp_path / place.partition("//")[2].replace("/", "-")
        device = consenting(folder, "9", place, transport=through(RELAY, keys))
        device.answer(study, {"ever": True})
        device.flush(1)
    assert len(seen) == 2
    assert seen[0] == seen[1]


def test_javascript_request_does_not_reveal_collector_address():
    said = json.loads(npm.node("inner_address.mjs", *PLACES))
    assert len(said) == 2
    assert said[0] == said[1]
