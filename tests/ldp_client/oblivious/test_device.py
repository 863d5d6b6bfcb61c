"""A device with a relay sends all its requests through the relay, and believes only the collector."""

import json
import sys

import pytest

from ldp_client.device import http, outbox
from ldp_client.documents.errors import MissingExtraError, RefusedError, TransferError
from ldp_client.oblivious import encapsulation
from ldp_client.oblivious.binary_http import Request
from ldp_client.oblivious.encapsulation import decapsulate
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.kit.oblivious import batched_study, through
from tests.ldp_client.devices import consenting
from tests.ldp_client.issuers import channel_of
from tests.portable import npm

YES = {"ever": True}
COLLECTOR = "http://127.0.0.1:9"
PROBLEM = {"Content-Type": "application/problem+json"}
KEY_GONE = (400, PROBLEM, b'{"type": "https://iana.org/assignments/http-problem-types#ohttp-key"}')
STUDY = batched_study()
ANSWER = {"Content-Type": "message/ohttp-res"}


@pytest.fixture
def device(tmp_path, server, relay, keys):
    device = consenting(tmp_path / "device", "9", server.url, transport=through(relay.url, keys))
    device.answer(STUDY, YES)
    return device


@pytest.mark.attack(10)
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ((404, {"Content-Type": "text/html"}, b"<html>"), "404"),
        ((200, {"Content-Type": "application/json"}, b'{"result": "stored"}'), "200"),
        ((200, ANSWER, bytes(4128)), "not the collector's"),
        ((410, PROBLEM, b'{"type": "urn:ldpkit:problem:report-withdrawn"}'), "410"),
    ],
)
def test_relays_own_answer_settles_no_report_and_no_fallback(device, relay, server, answer, said, send):
    """A relay answers in the collector's place that a report is stored or withdrawn."""
    relay.answer = answer
    flushed = send(device)
    assert (flushed.sent, flushed.waiting, flushed.refused) == (0, 1, [])
    assert said in flushed.reason
    device.withdraw(STUDY.id)
    assert send(device).undeleted == 1
    assert len(relay.requests) == 2
    assert server.requests == []


@pytest.mark.attack(12)
def test_device_attributes_key_gone_to_relay_and_advises_waiting(device, relay, send):
    """A relay claims that the collector's key is gone, so that people tell someone which report is theirs."""
    relay.answer = KEY_GONE
    (report,) = [queued.report_id for queued in device.ledger.queued()]
    for is_withdrawn in (False, True):
        if is_withdrawn:
            device.withdraw(STUDY.id)
        reason = send(device).reason
        assert f"{relay.url} says, without proof" in reason
        assert reason.index("on another day") < reason.index("contact")
        assert report not in reason
    before = len(relay.requests)
    assert send(device).undeleted == 1
    assert len(relay.requests) == before + 1


def test_relay_sees_one_media_type_and_one_size(device, relay, send):
    queued = device.ledger.queued()[0]
    send(device)
    device.withdraw(STUDY.id)
    send(device)
    with pytest.raises(TransferError):
        device.fetch(STUDY.id)
    for path, headers, body in relay.requests:
        assert path == "/ldpkit"
        assert set(headers) <= HEADERS
        assert headers["Content-Type"] == "message/ohttp-req"
        for text in (STUDY.id, queued.report_id, queued.secret, STUDY.digest):
            assert text.encode() not in body
            assert text not in json.dumps(headers)
    assert len({len(body) for _, _, body in relay.requests}) == 1
    # Encapsulated anew each time: the same request twice looks like two.
    assert len({body[7:39] for _, _, body in relay.requests}) == 3


HEADERS = {"Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Host", "User-Agent"}
PLACES = ("https://ada.collector.example", "https://collector.example:8443/for/bo")


@pytest.mark.processes
@pytest.mark.attack(12)
def test_encapsulated_request_does_not_reveal_collector_address(tmp_path, keys, monkeypatch):
    """A collector gives each person another address, and reads it in requests through the relay."""
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
        device = consenting(folder, "9", place, transport=through("https://relay.example/ldpkit", keys))
        device.answer(study, YES)
        device.flush(1)
    assert len(seen) == 2
    assert seen[0] == seen[1]
    said = json.loads(npm.node("inner_address.mjs", *PLACES))
    assert len(said) == 2
    assert said[0] == said[1]


@pytest.mark.attack(12)
def test_two_reports_are_not_relayed_together(tmp_path, keys, relay, monkeypatch):
    """Two studies' reports that reach the collector at one moment are known to be one person's."""
    device = consenting(tmp_path / "device", "9", COLLECTOR, transport=through(relay.url, keys))
    for name in ("first", "second"):
        device.answer(batched_study(id=name), YES)
    for sent in range(1, 5):
        now = max(queued.due for queued in device.ledger.queued())
        monkeypatch.setattr(outbox, "now", lambda now=now: float(now))
        device.flush(1)
        assert len(relay.requests) == sent


def test_relay_outside_allowed_hosts_is_rejected(tmp_path, keys):
    hosts = ["127.0.0.1:9", "127.0.0.1"]
    transport = through("https://relay.example/", keys)
    with raises(RefusedError, "device.host", "relay.example"):
        consenting(tmp_path, "9", COLLECTOR, allowed_hosts=hosts, transport=transport)


def test_missing_hpke_package_is_rejected_at_the_start(keys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyhpke", None)
    encapsulation.suite.cache_clear()
    with raises(MissingExtraError, "extra.missing", "ldp-client[oblivious]"):
        through("https://relay.example", keys)
    encapsulation.suite.cache_clear()


def test_study_with_an_issuer_or_nodes_is_rejected_before_answering(device):
    """The relay reaches one collector."""
    tokens = Study(studies.document(studies.YES_NO, id="tokens", channel=channel_of("https://i.example")))
    with raises(RefusedError, "device.beyond_the_relay"):
        device.answer(tokens, YES, "CODE")
    assert device.epsilon_left == 8
