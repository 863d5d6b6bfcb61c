"""A device with a relay sends all its requests through the relay, and believes only the collector.

Defence: The device: each request is encapsulated for the gateway's key that the app ships, or not sent. Known
limit: relay and collector together see whose report it is.
"""

from __future__ import annotations

import json
import sys
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ldp_client import Oblivious
from ldp_client.documents.errors import InputError, MissingExtraError, RefusedError, TransferError, UsageError
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server as Recorder
from tests.ldp_client.devices import consenting
from tests.ldp_client.issuers import channel_of
from tests.oblivious.conftest import batched_study, through

YES = {"ever": True}
COLLECTOR = "http://127.0.0.1:9"


@pytest.fixture
def collector():
    """One that would take whatever comes directly: nothing must."""
    with Recorder() as recorder:
        yield recorder


class Relay:
    """A relay that answers as it is told. requests: (path, headers, body)."""

    def __init__(self):
        self.requests, self.answer = [], (502, {}, b"")
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((self.path, dict(self.headers), body))
                status, headers, content = outer.answer
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        self.http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/ldpkit"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def relay():
    with Relay() as relay:
        yield relay


@pytest.fixture
def study():
    return batched_study()


@pytest.fixture
def device(tmp_path, collector, relay, keys, study):
    device = consenting(tmp_path / "device", "9", collector.url, transport=through(relay.url, keys))
    device.answer(study, YES)
    return device


@pytest.mark.parametrize(
    ("status", "headers", "body", "said"),
    [
        (502, {}, b"", "502"),
        (429, {}, b"", "429"),
        (404, {"Content-Type": "text/html"}, b"<html>", "404"),
        (200, {"Content-Type": "application/json"}, b'{"result": "stored"}', "200"),
        (200, {"Content-Type": "message/ohttp-res"}, b"", "not the collector's"),
        (200, {"Content-Type": "message/ohttp-res"}, bytes(4128), "not the collector's"),
        (
            400,
            {"Content-Type": "application/problem+json"},
            b'{"type": "https://iana.org/assignments/http-problem-types#ohttp-key"}',
            "no longer has the key",
        ),
        (
            410,
            {"Content-Type": "application/problem+json"},
            b'{"type": "urn:ldpkit:problem:report-withdrawn"}',
            "410",
        ),
    ],
)
def test_relays_own_answer_settles_no_report_and_no_fallback(
    device, relay, collector, study, status, headers, body, said, send
):
    relay.answer = (status, headers, body)
    flushed = send(device)
    assert (flushed.sent, flushed.waiting, flushed.refused) == (0, 1, [])
    assert said in flushed.reason
    [report] = [queued.report_id for queued in device.ledger.queued()]
    device.withdraw(study.id)
    flushed = send(device)
    assert flushed.undeleted == 1
    # Its report is stored elsewhere: the person is told whom to ask for what.
    assert (
        f"ask the study's contact to put the key back, or else to delete report {report}" in flushed.reason
    ) == (said == "no longer has the key")
    assert len(relay.requests) == 2
    assert collector.requests == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_relay_redirect_is_not_followed(device, relay, collector, study, status, send):
    path = f"/v1/studies/{study.id}/reports/{device.ledger.queued()[0].report_id}"
    relay.answer = (status, {"Location": collector.url + path}, b"")
    assert send(device).sent == 0
    assert collector.requests == []


def test_report_waits_for_an_unreachable_relay(tmp_path, keys, collector, study, send):
    transport = through("http://127.0.0.1:9/", keys)
    device = consenting(tmp_path, "9", collector.url, transport=transport)
    device.answer(study, YES)
    assert send(device).waiting == 1
    with raises(TransferError, "device.unreachable"):
        device.fetch(study.id)
    assert collector.requests == []


def test_environment_proxy_sees_only_what_the_relay_sees(device, relay, monkeypatch, send):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    send(device)
    # Nothing for this machine goes through one.
    assert len(relay.requests) == 1


def test_relay_sees_one_media_type_and_one_size(device, relay, study, send):
    queued = device.ledger.queued()[0]
    send(device)
    device.withdraw(study.id)
    send(device)
    with pytest.raises(TransferError):
        device.fetch(study.id)
    for path, headers, body in relay.requests:
        assert path == "/ldpkit"
        assert set(headers) <= {
            "Accept-Encoding",
            "Connection",
            "Content-Length",
            "Content-Type",
            "Host",
            "User-Agent",
        }
        assert headers["Content-Type"] == "message/ohttp-req"
        for text in (study.id, queued.report_id, queued.secret, study.digest):
            assert text.encode() not in body
            assert text not in json.dumps(headers)
    assert len({len(body) for _, _, body in relay.requests}) == 1
    # Encapsulated anew each time: the same request twice looks like two.
    assert len({body[7:39] for _, _, body in relay.requests}) == 3


def test_relay_outside_allowed_hosts_is_rejected(tmp_path, keys):
    hosts = ["127.0.0.1:9", "127.0.0.1"]
    with raises(RefusedError, "device.host", "relay.example"):
        consenting(
            tmp_path, "9", COLLECTOR, allowed_hosts=hosts, transport=through("https://relay.example/", keys)
        )


@pytest.mark.parametrize("relay", ["http://relay.example/", "relay.example", ""])
def test_relay_without_https_is_rejected(keys, relay):
    with pytest.raises(UsageError):
        through(relay, keys)


@pytest.mark.parametrize("change", ["", "AAAA", "no base64!", "wrong suite", "wrong curve"])
def test_malformed_key_is_rejected(keys, change):
    whole = bytearray(keys.keys[0].configuration)
    if change.startswith("wrong"):
        whole[-1 if change == "wrong suite" else 2] ^= 1
        change = b64encode(whole).decode()
    with raises(InputError, "device.relay_configuration"):
        Oblivious("https://relay.example", change)


def test_missing_hpke_package_is_rejected_at_the_start(keys, monkeypatch):
    from ldp_client.oblivious import encapsulation

    monkeypatch.setitem(sys.modules, "pyhpke", None)
    encapsulation._suite.cache_clear()
    with raises(MissingExtraError, "extra.missing", "ldp-client[oblivious]") as raised:
        through("https://relay.example", keys)
    assert "\n" not in str(raised.value)
    encapsulation._suite.cache_clear()


def test_study_with_an_issuer_or_nodes_is_rejected_before_answering(device):
    """The relay reaches one collector."""
    tokens = Study(studies.document(studies.YES_NO, id="tokens", channel=channel_of("https://i.example")))
    with raises(RefusedError, "device.beyond_the_relay"):
        device.answer(tokens, YES, "CODE")
    assert device.epsilon_left == 8


def test_oversized_invitation_is_kept_and_reported(tmp_path, relay, keys, collector):
    device = consenting(tmp_path / "other", "9", collector.url, transport=through(relay.url, keys))
    device.answer(Study(studies.document(studies.YES_NO)), YES, "x" * 300_000)
    flushed = device.flush(1)
    assert "longer than a relayed request may be" in flushed.reason
    assert (relay.requests, collector.requests) == ([], [])
