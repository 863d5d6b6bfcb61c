"""A collector shows each address another identity, to recognise the device's requests behind a relay.

Defence: The device: for a study with a channel it takes the collector's identity only from answers about
the report, requested as the report leaves; the encapsulated request does not name a collector.
"""

import json

import pytest

from ldp_client.device import clock, relayed
from ldp_client.device.exchange import Answer
from ldp_client.oblivious.binary_http import Answer as BinaryAnswer
from ldp_client.oblivious.binary_http import Request
from ldp_client.oblivious.encapsulation import ANSWER_TYPE, decapsulate
from tests.ldp_client.devices import Server, consenting
from tests.oblivious.conftest import keys, relayed_study

__all__ = ["keys"]
RELAY = "https://relay.example/ldpkit"
ADAS, BOS = "a" * 32, "b" * 32


@pytest.fixture
def behind(keys, monkeypatch):
    """What the collector is asked through the relay; it answers all with Ada's identity."""
    asked = []

    def exchange(request, *_):
        received = decapsulate(keys.keys[0].private, request.data)
        found = Request.decode(received.content)
        asked.append((found.method, found.path.rpartition("/")[2]))
        body = json.dumps({"id": asked[-1][1], "result": "stored"}).encode()
        fields = [("content-type", "application/json"), ("ldpkit-collector", ADAS)]
        status = 201
        if found.method == "GET":
            # It serves the study that was answered.
            (tag,) = [value for name, value in found.fields if name == "if-none-match"]
            status, fields, body = 304, [*fields[1:], ("etag", tag)], b""
        sealed = received.answer(BinaryAnswer(status, fields, body).encode(4096))
        headers = relayed.Message()
        headers["Content-Type"] = ANSWER_TYPE
        return Answer(200, headers, sealed)

    monkeypatch.setattr(relayed, "exchange", exchange)
    return asked


def test_identity_shown_in_clear_does_not_mark_relayed_reports(tmp_path, behind, keys, monkeypatch):
    study = relayed_study(RELAY, keys)
    whose = {}
    with Server(study.canonical()) as collector:
        for name, identity in (("ada", ADAS), ("bo", BOS)):
            collector.identity = identity
            device = consenting(tmp_path / name, "9", collector.url, known_digests=[study.digest])
            whose[device.answer(device.fetch(study.id), {"ever": True})] = name
        for _ in range(4):
            for name in ("ada", "bo"):
                device = consenting(tmp_path / name, "9", collector.url)
                for queued in device.ledger.queued():
                    monkeypatch.setattr(clock, "now", lambda due=queued.due: due + 7200.0)
                    device.flush(1)
    puts = [whose[report] for method, report in behind if method == "PUT"]
    assert puts.count("bo") == puts.count("ada") == 1
