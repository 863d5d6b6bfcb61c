"""A device whose study states a relay sends its requests about the report only through the relay.

Defence: The device: the relay is not used for an hour, and up to a random hour more, after a direct visit,
also after a restart or reload. Known limit: a visit by the person after the report was sent; the collector
sees that an address visits and takes part.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from ldp_client.device import clock, outbox
from ldp_client.device.trust import note_identity
from ldp_client.documents.errors import LedgerError, MissingExtraError, RefusedError, UsageError
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server as Recorder
from tests.ldp_client.devices import consenting
from tests.oblivious.conftest import relayed_study

YES = {"ever": True}
HOUR = 3600
COLLECTOR = "http://127.0.0.1:9"


@pytest.fixture
def collector():
    """One that would take whatever comes in the clear: nothing must."""
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
def study(relay, keys):
    return relayed_study(relay.url, keys)


@pytest.fixture
def device(tmp_path, collector, study):
    device = consenting(tmp_path / "device", "9", collector.url)
    device.answer(study, YES)
    return device


RECEIPT = ("application/json", '{"id": "x", "result": "stored"}')


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


def test_report_waits_for_an_unreachable_relay(tmp_path, keys, collector, send):
    device = consenting(tmp_path, "9", collector.url)
    device.answer(relayed_study("http://127.0.0.1:9/", keys), YES)
    assert send(device).waiting == 1
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
        for told in (study.id, queued.report_id, queued.secret, study.digest):
            assert told.encode() not in body
            assert told not in json.dumps(headers)
    assert len({len(body) for _, _, body in relay.requests}) == 1
    # Encapsulated anew each time: the same request twice looks like two.
    assert len({body[7:39] for _, _, body in relay.requests}) == 2


@pytest.mark.usefixtures("device")
def test_route_is_stored_with_the_report(relay, tmp_path, collector, send):
    ledger = tmp_path / "device" / "ledger.sqlite3"
    with closing(sqlite3.connect(ledger)) as connection:
        before = connection.execute("SELECT document, channel FROM channels").fetchall()
        assert [json.loads(row[1])["oblivious"]["relay"] for row in before] == [relay.url]
    again = consenting(tmp_path / "device", "9", collector.url)
    send(again)
    assert (len(relay.requests), collector.requests) == (1, [])
    for change in ("DELETE FROM channels", "DROP TABLE channels"):
        with closing(sqlite3.connect(ledger)) as connection:
            connection.execute(change)
            connection.commit()
        with pytest.raises(LedgerError):
            send(again)
    assert collector.requests == []


def test_other_studies_are_sent_directly(device, relay, collector, send):
    plain = Study(studies.document(studies.YES_NO, id="plain"))
    device.answer(plain, YES)
    assert send(device).sent == 1
    assert [path for path in collector.asked("PUT") if "plain" in path] == collector.asked("PUT")
    # Not beside it.
    assert relay.requests == []
    send(device)
    assert len(relay.requests) == 1


def test_relay_outside_allowed_hosts_is_rejected_before_answering(tmp_path, keys):
    device = consenting(tmp_path, "9", COLLECTOR, allowed_hosts=["127.0.0.1:9", "127.0.0.1"])
    with raises(RefusedError, "device.host", "relay.example"):
        device.answer(relayed_study("https://relay.example/", keys), YES)
    with raises(UsageError, "device.collector_https"):
        device.answer(relayed_study("http://relay.example/", keys), YES)
    assert device.epsilon_left == 9


@pytest.mark.usefixtures("device")
def test_report_waits_if_its_relay_is_no_longer_allowed(relay, tmp_path, collector, send):
    host, _, _ = collector.url.removeprefix("http://").partition("/")
    stricter = consenting(tmp_path / "device", "9", collector.url, allowed_hosts=[host])
    flushed = send(stricter)
    assert (flushed.waiting, relay.requests, collector.requests) == (1, [], [])
    assert "127.0.0.1" in flushed.reason


def test_missing_hpke_package_is_rejected_before_answering(tmp_path, study, monkeypatch):
    from ldp_client.oblivious import encapsulation

    monkeypatch.setitem(sys.modules, "pyhpke", None)
    encapsulation._suite.cache_clear()
    device = consenting(tmp_path / "other", "9", COLLECTOR)
    with raises(MissingExtraError, "extra.missing", "ldp-client[oblivious]") as raised:
        device.answer(study, YES)
    assert "\n" not in str(raised.value)
    assert device.epsilon_left == 9
    encapsulation._suite.cache_clear()


def test_oversized_invitation_is_kept_and_reported(tmp_path, relay, study, collector, send):
    device = consenting(tmp_path / "other", "9", collector.url)
    device.answer(study, YES, "x" * 4000)
    with device.ledger.writing() as connection:
        note_identity(connection, study.digest, collector.url, "a" * 32)
    flushed = send(device)
    assert "does not fit" in flushed.reason
    assert (relay.requests, collector.requests) == ([], [])


@pytest.fixture
def seen(device, collector, study, monkeypatch):
    """The report is overdue, the study was fetched: another process's flush so many seconds later."""
    now = max(report.due for report in device.ledger.queued()) + 5 * HOUR
    monkeypatch.setattr(clock, "now", lambda: float(now))
    collector.content = study.canonical()
    device.fetch(study.id)

    def later(seconds):
        monkeypatch.setattr(clock, "now", lambda: float(now + seconds))
        return consenting(device.ledger.folder, "9", collector.url).flush(1)

    return later


def test_relay_is_not_used_for_an_hour_after_a_direct_fetch(seen, relay):
    flushed = seen(60)
    assert (flushed.batched, flushed.waiting, relay.requests) == (1, 0, [])
    assert seen(HOUR).batched == 1
    assert relay.requests == []
    # Overdue as it was at the first of these, it waits as after a visit then.
    assert seen(2 * HOUR + 60).waiting == 1
    assert len(relay.requests) == 1


def test_delay_after_a_direct_fetch_is_random(device, collector, study, monkeypatch):
    collector.content = study.canonical()
    monkeypatch.setattr(clock, "now", lambda: 0.0)
    moments = []
    for _ in range(12):
        device.fetch(study.id)
        with closing(sqlite3.connect(device.ledger.path)) as connection:
            moments += connection.execute("SELECT until FROM apart").fetchone()
    assert all(HOUR <= moment <= 2 * HOUR for moment in moments)
    assert len(set(moments)) > 6


def test_old_direct_visit_is_deleted_from_the_ledger(seen, device):
    # Overdue as it is, the report waits once more, as after a visit.
    seen(60)
    seen(5 * HOUR)
    with closing(sqlite3.connect(device.ledger.path)) as connection:
        assert connection.execute("SELECT until FROM apart").fetchall() == []


def test_wrong_clock_at_the_fetch_does_not_block_the_report(seen, relay):
    # It was a year ahead then, and so was the report's moment, which is drawn anew.
    year = 365 * 24 * HOUR
    assert (seen(-year).batched, seen(2 * HOUR - 60 - year).batched, relay.requests) == (1, 1, [])
    for hours in range(2, 9):
        seen(hours * HOUR - year)
    assert len(relay.requests) >= 1


def test_deletion_keeps_the_same_delay_as_a_report(device, relay, collector, study, send, monkeypatch):
    send(device)
    device.withdraw(study.id)
    with device.ledger.reading() as connection:
        (report,) = outbox.withdrawn(connection)
    monkeypatch.setattr(clock, "now", lambda: float(report.due + 1))
    collector.content = study.canonical()
    device.fetch(study.id)
    assert device.flush(1).batched == 1
    assert len(relay.requests) == 1
    # Unless the person wants it at once.
    assert device.flush(1, now=True).undeleted == 1
    assert len(relay.requests) == 2
