"""One request and its whole answer: certificates, proxies, the deadline."""

import random
import ssl
import threading
import urllib.request

import pytest

from ldp_client import Direct
from ldp_client.device import http
from ldp_client.device.requests import put_report
from ldp_client.documents.errors import TransferError
from tests.kit.certificates import write_certificate
from tests.kit.errors import raises
from tests.kit.serving import JSON_HEADERS, LONGEST_SECONDS, STALLS
from tests.ldp_client.devices import STUDY, YES, Server, consenting, fetch_study


@pytest.mark.attack(9)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(server, other, status):
    """A collector or a proxy redirects reports and studies to another host, port or path."""
    for target in (server.url, server.url.replace("127.0.0.1", "localhost"), other.url, "file:///etc/hosts"):
        server.statuses = [status] * 2
        server.headers = {"Location": f"{target}/v1/studies/survey"}
        assert put_report(Direct(), f"{server.url}/x", "{}").state == "kept"
        with raises(TransferError, "device.http_status", str(status)):
            fetch_study(f"{server.url}/old/v1/studies/survey")
    assert other.requests == []
    assert {path for _, path, _, _ in server.requests} == {"/x", "/old/v1/studies/survey"}


@pytest.fixture
def secure(tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*write_certificate(tmp_path))
    with Server(STUDY.canonical(), context) as server:
        yield server


@pytest.mark.attack(9)
@pytest.mark.parametrize("is_patched", [False, True])
def test_collector_with_an_untrusted_certificate_gets_nothing(tmp_path, secure, monkeypatch, is_patched):
    """A server with its own certificate poses as the collector, in an app that turned verification off."""
    if is_patched:
        monkeypatch.setattr(ssl, "_create_default_https_context", ssl._create_unverified_context)
    device = consenting(tmp_path / "device", "4", secure.url)
    device.answer(STUDY, YES)
    assert "certificate verify failed" in device.flush(attempts=1).reason
    with raises(TransferError, "device.unreachable", "certificate"):
        device.fetch("survey")
    assert secure.requests == []


def test_only_local_requests_bypass_proxy(server, other, monkeypatch):
    monkeypatch.setenv("http_proxy", other.url)
    for url in (f"{server.url}/x", "http://127.elsewhere.example/x"):
        put_report(Direct(), url, "{}")
    assert (len(server.requests), len(other.requests)) == (1, 1)


@pytest.mark.attack(15)
@pytest.mark.parametrize("stall", STALLS.values(), ids=STALLS)
def test_whole_request_has_one_deadline(monkeypatch, waits, stall, stalling_server):
    """A server holds a device up: it is silent, or sends a byte now and then."""
    monkeypatch.setattr(http, "DEADLINE_SECONDS", 0.2)
    url = stalling_server(*stall)
    with raises(TransferError, "device.no_whole_answer"):
        http.exchange(urllib.request.Request(url))
    assert waits.seconds == [0.2]


def test_nothing_is_sent_after_the_deadline(server, monkeypatch, waits):
    """The connection is made too late; a deletion may have been sent meanwhile."""
    connect, over, threads = http.HTTPConnection.connect, threading.Event(), []

    def late(connection):
        assert over.wait(LONGEST_SECONDS)
        connect(connection)

    waits.wait = lambda thread, _seconds: threads.append(thread)
    monkeypatch.setattr(http.HTTPConnection, "connect", late)
    assert put_report(Direct(), f"{server.url}/x", "{}").state == "waiting"
    over.set()
    (thread,) = threads
    threading.Thread.join(thread, LONGEST_SECONDS)
    assert not thread.is_alive()
    assert server.requests == []


@pytest.mark.attack(15)
def test_endless_answer_is_not_read_whole(endless_server):
    """A server sends an answer without end, to fill a device's memory."""
    url, sent = endless_server(JSON_HEADERS + b"\r\n", b" ")
    assert put_report(Direct(), f"{url}/x", "{}").state == "kept"
    assert sum(sent) < 50 << 20


def test_truncated_answer_is_rejected(raw_server):
    cut = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwhole"
    url = raw_server(lambda connection: connection.sendall(cut))
    with raises(TransferError, "device.cut_off"):
        http.exchange(urllib.request.Request(url))


def test_pauses_between_attempts_differ_despite_a_seed():
    """A program seeds `random`, so that all its devices would try again in the same moments."""
    drawn = set()
    for _ in range(3):
        random.seed(1)
        drawn.add(http.backoff(1))
    assert len(drawn) == 3
