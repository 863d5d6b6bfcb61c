"""A server stalls, sends a byte a second, redirects in circles or breaks off, to hold a device up.

Attack: Hold a device up: stalls, a byte a second, redirects in circles, answers without end, a proxy for
this machine: the device: 20 s for a whole request, 5 redirects, 64 KB, 5 minutes for a flush; one report
never blocks another: each request is made once before any a second time, deletions and uploads in turn, and
a third of a minute's requests is kept for uploads (`test_starved_uploads.py`; in a browser no such share,
and deletions first). Known limit: a server that always stalls keeps its own reports waiting, and in a
browser what comes within the 20 s is read whatever its size.

Attack: The same to an operator's `ldpkit export` or `ldpkit node close`: the command: one deadline
for each request with its retries; an export may take any time, but must bring 1 KB a second, in lines no
longer than a report.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import urllib.request
from threading import Timer
from types import SimpleNamespace

import pytest

from collector.remote import client, download, nodes
from collector.remote.download import fetch_reports, fetch_summary
from collector.remote.nodes import NodeClient
from ldp_client import Direct
from ldp_client.device import http, sending, verdicts
from ldp_client.device.requests import put_report
from ldp_client.documents.errors import TransferError
from schemas import Study
from tests import studies
from tests.kit.errors import raises
from tests.ldp_client.devices import Server, consenting
from tests.ldp_client.issuers import Issuer, study_of

STUDY = Study(studies.document(studies.YES_NO))
OTHER = Study(studies.document(studies.YES_NO, id="other"))
YES = {"ever": True}
# Ends a test that hangs.
LONGEST_SECONDS = 60


@contextlib.contextmanager
def raw_server(answer):
    """answer: called with each connection, in a thread."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer_quietly, args=(connection,), daemon=True).start()

    def answer_quietly(connection):
        with connection, contextlib.suppress(OSError):
            connection.recv(1 << 16)
            answer(connection)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


# What a server that stalls sends at once, and then again and again.
JSON_HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
STALLS = {
    "silent": (b"", b""),
    "dripping_headers": (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "dripping_body": (JSON_HEADERS + b"Content-Length: 100000\r\n\r\n", b" "),
}


@contextlib.contextmanager
def stalling_server(start, piece):
    """A server that stalls until the block is left: it fails whoever waits for the end of that."""
    over, outlasted = threading.Event(), []

    def answer(connection):
        connection.sendall(start)
        for _ in range(LONGEST_SECONDS * 20):
            if over.wait(0.05) or outlasted:
                return
            connection.sendall(piece)
        outlasted.append(start)

    with raw_server(answer) as url:
        try:
            yield url
        finally:
            over.set()
    assert outlasted == []


class Waits:
    """How an exchange is waited for; a test may put another way in the place of `wait`. seconds: for each."""

    def __init__(self):
        self.seconds, self.wait = [], threading.Thread.join

    def join(self, thread, seconds):
        self.seconds.append(seconds)
        self.wait(thread, seconds)


@pytest.fixture
def waits(monkeypatch):
    found = Waits()

    class Exchange(threading.Thread):
        def join(self, timeout=None):
            found.join(self, timeout)

    monkeypatch.setattr(http, "threading", SimpleNamespace(Thread=Exchange, Lock=threading.Lock))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("stall", STALLS.values(), ids=STALLS)
def test_whole_request_has_one_deadline(tmp_path, monkeypatch, waits, stall):
    monkeypatch.setattr(http, "DEADLINE_SECONDS", 0.5)
    with stalling_server(*stall) as url:
        device = consenting(tmp_path, "4", url)
        device.answer(STUDY, YES)
        flushed = device.flush(attempts=1)
        with raises(TransferError, "device.unreachable", "no whole answer in"):
            device.fetch("survey")
    assert waits.seconds == [0.5, 0.5]
    assert flushed.waiting == 1
    assert "no whole answer in" in flushed.reason
    assert len(device.ledger.queued()) == 1


def test_nothing_is_sent_after_deadline(monkeypatch, waits):
    """The connection is made too late; a deletion may have been sent meanwhile."""
    connect, over, threads = http.HTTPConnection.connect, threading.Event(), []

    def late(connection):
        assert over.wait(LONGEST_SECONDS)
        connect(connection)

    waits.wait = lambda thread, _seconds: threads.append(thread)
    monkeypatch.setattr(http.HTTPConnection, "connect", late)
    with Server() as server:
        assert put_report(Direct(), f"{server.url}/x", "{}").state == "waiting"
        over.set()
        (thread,) = threads
        threading.Thread.join(thread, LONGEST_SECONDS)
        assert not thread.is_alive()
    assert server.requests == []


def test_redirect_loop_is_ended(tmp_path):
    with Server(STUDY.canonical()) as server:
        device = consenting(tmp_path, "4", server.url)
        device.answer(STUDY, YES)
        server.headers = {"Location": "/again"}
        server.statuses = [307] * 50
        flushed = device.flush(attempts=1)
        assert flushed.waiting == 1
        assert "redirects" in flushed.reason
        with raises(TransferError, "device.unreachable", "redirects"):
            device.fetch("survey")
        assert len(server.requests) <= 2 * (http.MOST_REDIRECTS + 1)
        server.statuses, server.headers = [], {}
        assert device.flush(attempts=1).sent == 1


def test_failing_report_blocks_no_other_or_deletion(tmp_path, monkeypatch):
    put = verdicts.put_report

    def failing(transport, url, *what):
        if "/survey/" in url:
            raise ValueError("an odd one")
        return put(transport, url, *what)

    monkeypatch.setattr(verdicts, "put_report", failing)
    third = Study(studies.document(studies.YES_NO, id="third"))
    with Server() as server:
        device = consenting(tmp_path, "4", server.url)
        device.answer(third, YES)
        assert device.flush(attempts=1).sent == 1
        device.withdraw("third")
        device.answer(STUDY, YES)
        device.answer(OTHER, YES)
        flushed = device.flush(attempts=1)
        assert (flushed.sent, flushed.waiting, flushed.deleted) == (1, 1, 1)
        assert "odd one" not in flushed.reason
        assert [method for method, *_ in server.requests] == ["PUT", "DELETE", "PUT"]


def test_flush_ends_despite_many_stalled_reports(tmp_path, monkeypatch, waits):
    monkeypatch.setattr(http, "DEADLINE_SECONDS", 0.3)
    monkeypatch.setattr(sending, "LONGEST_FLUSH_SECONDS", 0.5)
    # Time goes on only while an exchange is waited for, and none ends.
    waits.wait = lambda _thread, _seconds: None
    monkeypatch.setattr(sending, "monotonic", lambda: sum(waits.seconds))
    with stalling_server(*STALLS["silent"]) as url:
        device = consenting(tmp_path, "4", url)
        for number in range(12):
            device.answer(
                Study(studies.document(studies.with_epsilon(studies.YES_NO, "0.1"), id=f"s{number}")), YES
            )
        assert device.flush(attempts=1).waiting == 12
    assert waits.seconds == [0.3, 0.3]


def test_endless_answer_is_not_read_whole():
    def endless(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        for _ in range(3000):
            connection.sendall(b" " * (1 << 16))

    with raw_server(endless) as url:
        assert put_report(Direct(), f"{url}/x", "{}").state == "kept"


def test_local_requests_bypass_proxy(tmp_path, monkeypatch):
    with Server() as proxy, Server(STUDY.canonical()) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
            monkeypatch.setenv(name.upper(), proxy.url)
        device = consenting(tmp_path, "4", server.url)
        device.answer(device.fetch("survey"), YES)
        assert device.flush(attempts=1).sent == 1
        assert proxy.requests == []
        assert len(server.requests) == 2


def test_host_name_like_local_address_uses_proxy(monkeypatch):
    with Server() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        put_report(Direct(), "http://127.elsewhere.example/x", "{}")
        assert len(proxy.requests) == 1


SUMMARY = b'{"format":"ldpkit.summary/1"}'


@pytest.mark.parametrize("body", [b"", b"{}", b"<html>Sign in</html>", b'{"format":1}', b"[]", b"\xff"])
def test_invalid_summary_is_rejected(body):
    with Server(body) as server, raises(TransferError, "server.not_a_summary"):
        fetch_summary(server.url, "survey", "key")


def test_operator_key_for_local_server_bypasses_proxy(monkeypatch):
    with Server() as proxy, Server(SUMMARY) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert fetch_summary(server.url, "survey", "key") == SUMMARY.decode()
        NodeClient(server.url, "survey", "key").document(1)
        assert (proxy.requests, len(server.requests)) == ([], 2)


def test_server_error_shown_to_operator_is_short_and_printable():
    with Server() as server:
        said = json.dumps({"detail": "\x1b[2Jowned\n" + "x" * 10_000})
        server.refusals, server.statuses = {403: ("application/problem+json", said)}, [403]
        with pytest.raises(TransferError) as caught:
            fetch_summary(server.url, "survey", "key")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


OPERATORS = {
    "export": lambda url: list(fetch_reports(url, "survey", "key")),
    "summary": lambda url: fetch_summary(url, "survey", "key"),
    "node": lambda url: NodeClient(url, "survey", "key").document(1),
}


STALLS_OF_OPERATORS = {
    **STALLS,
    # The length of a chunk, which http.client reads as one line.
    "dripping_chunks": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    "dripping_refusal": (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 100000\r\n\r\n", b" "),
}


@pytest.mark.slow
@pytest.mark.parametrize("command", OPERATORS)
@pytest.mark.parametrize("stall", STALLS_OF_OPERATORS.values(), ids=STALLS_OF_OPERATORS)
def test_stalling_server_does_not_hold_operator_command(monkeypatch, waits, command, stall):
    allowed = []

    class Allowed(Timer):
        def __init__(self, seconds, cut):
            super().__init__(seconds, cut)
            allowed.append(seconds)

    monkeypatch.setattr(client, "Timer", Allowed)
    monkeypatch.setattr(client, "MOST_WAITING_SECONDS", 0.5)
    monkeypatch.setattr(download, "DEADLINE_SECONDS", 0.5)
    monkeypatch.setattr(nodes, "DEADLINE_SECONDS", 0.5)
    monkeypatch.setattr(http, "FIRST_DELAY_SECONDS", 0.01)
    code = "server.too_slow" if command == "export" else "server.no_whole_answer"
    with stalling_server(*stall) as url, raises(TransferError, code):
        OPERATORS[command](url)
    # What is left of it, for each wait: together no more than the whole.
    assert sum(waits.seconds) <= 0.5
    assert max(allowed, default=0) <= 0.5
    assert bool(allowed) == (command == "export")
    assert bool(waits.seconds) == (command != "export")


def test_slow_steady_export_is_not_aborted(monkeypatch):
    """The reader's own time does not count against the server."""
    now, most = [0.0], 1.0
    monkeypatch.setattr(client, "MOST_WAITING_SECONDS", most)
    monkeypatch.setattr(client, "SLOWEST_BYTES", 10)
    monkeypatch.setattr(client, "STEP_BYTES", 100)

    class Timer:
        """Of a server that takes 0.4 s for all that is waited for; only so does time go on."""

        def __init__(self, seconds, cut):
            self.seconds, self.cut = seconds, cut

        def start(self):
            now[0] += 0.4
            if self.seconds < 0.4:
                self.cut()

        def cancel(self):
            pass

    def whole(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + b" " * 2000)

    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(client, "Timer", Timer)
    with raw_server(whole) as url:
        came = 0
        with client.stream(url, "key", "it", client.Allowance()) as pieces:
            for some in pieces:
                came += len(some)
                now[0] += 1.2 * most
    assert came == 2000
    assert now[0] > 30 * most


def test_endless_line_is_not_kept_in_memory(monkeypatch):
    monkeypatch.setattr(download, "MAX_BYTES", 1 << 20)
    sent = []

    def endless(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b"x" * (1 << 16))
            sent.append(1 << 16)

    with raw_server(endless) as url, raises(TransferError, "server.line_too_long"):
        list(fetch_reports(url, "survey", "key"))
    assert sum(sent) < 16 << 20


def test_truncated_answer_is_rejected():
    def broken(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwhole")

    with raw_server(broken) as url, raises(TransferError, "device.cut_off"):
        http.exchange(urllib.request.Request(url))


def test_stalling_issuer_delays_flush_only_by_its_deadline(tmp_path, monkeypatch, waits):
    """The report that waits for its token does not block others either."""
    monkeypatch.setattr(http, "DEADLINE_SECONDS", 3)
    monkeypatch.setattr(http, "TIMEOUT_SECONDS", LONGEST_SECONDS)
    asked, over, given_up = threading.Event(), threading.Event(), []

    def wait(thread, seconds):
        """Until there is an answer; the deadline has come as soon as the issuer stalls."""
        while thread.is_alive() and not asked.is_set():
            threading.Thread.join(thread, 0.01)
        if asked.is_set():
            asked.clear()
            given_up.append(seconds)

    def stall(*_):
        asked.set()
        over.wait(LONGEST_SECONDS)

    waits.wait = wait
    with Server() as collector, Issuer() as issuer:
        device = consenting(tmp_path, "8", collector.url)
        device.answer(study_of(issuer.url, id="tokened"), {"ever": True}, "CODE")
        device.answer(Study(studies.document(studies.YES_NO, id="plain")), {"ever": True})
        issuer.answers = [stall]
        flushed = device.flush(attempts=1)
        over.set()
        assert given_up == [3]
        assert set(waits.seconds) == {3}
        assert (flushed.sent, flushed.waiting) == (1, 1)
        assert "no whole answer" in flushed.reason
        assert device.flush(attempts=1).scheduled == 1
