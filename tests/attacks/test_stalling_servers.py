"""A server stalls, sends a byte a second, redirects in circles or breaks off, to hold a device up."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
import urllib.request

import pytest

from collector.remote import client, download, nodes
from collector.remote.download import fetch_reports, fetch_summary
from collector.remote.nodes import NodeClient
from ldp_client.device import exchange, sending
from ldp_client.device.upload import put_report
from ldp_client.documents.errors import TransferError
from schemas import Study
from tests import studies
from tests.ldp_client.devices import Server, consenting
from tests.ldp_client.issuers import Issuer, study_of

STUDY = Study(studies.document(studies.YES_NO))
OTHER = Study(studies.document(studies.YES_NO, id="other"))
YES = {"ever": True}


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


def silent(_connection):
    time.sleep(5)


def dripping_headers(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for number in range(100):
        connection.sendall(f"X-{number}: x\r\n".encode())
        time.sleep(0.05)


def dripping_body(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(100):
        connection.sendall(b" ")
        time.sleep(0.05)


@pytest.mark.parametrize("answer", [silent, dripping_headers, dripping_body])
def test_the_whole_request_has_one_deadline(tmp_path, monkeypatch, answer):
    monkeypatch.setattr(exchange, "DEADLINE_SECONDS", 0.5)
    with raw_server(answer) as url:
        device = consenting(tmp_path, "4", url)
        device.answer(STUDY, YES)
        start = time.monotonic()
        flushed = device.flush(attempts=1)
        with pytest.raises(TransferError, match="no whole answer in"):
            device.fetch("survey")
        assert time.monotonic() - start < 4
    assert flushed.waiting == 1
    assert "no whole answer in" in flushed.reason
    assert len(device.ledger.queued()) == 1


def test_nothing_leaves_after_the_deadline(monkeypatch):
    """The connection comes about too late: a deletion may have been sent meanwhile."""
    received = []
    connect = exchange.HTTPConnection.connect

    def late(connection):
        time.sleep(0.5)
        connect(connection)

    monkeypatch.setattr(exchange.HTTPConnection, "connect", late)
    monkeypatch.setattr(exchange, "DEADLINE_SECONDS", 0.1)
    with Server() as server:
        assert put_report(f"{server.url}/x", "{}").state == "waiting"
        time.sleep(1)
        received += server.requests
    assert received == []


def test_a_circle_of_redirects_is_left(tmp_path):
    with Server(STUDY.canonical()) as server:
        device = consenting(tmp_path, "4", server.url)
        device.answer(STUDY, YES)
        server.headers = {"Location": "/again"}
        server.statuses = [307] * 50
        flushed = device.flush(attempts=1)
        assert flushed.waiting == 1
        assert "redirects" in flushed.reason
        with pytest.raises(TransferError, match="redirects"):
            device.fetch("survey")
        assert len(server.requests) <= 2 * (exchange.MOST_REDIRECTS + 1)
        server.statuses, server.headers = [], {}
        assert device.flush(attempts=1).sent == 1


def test_one_bad_report_blocks_no_other_and_deletions_go_first(tmp_path, monkeypatch):
    put = sending.put_report

    def failing(url, *what):
        if "/survey/" in url:
            raise ValueError("an odd one")
        return put(url, *what)

    monkeypatch.setattr(sending, "put_report", failing)
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


def test_a_flush_ends(tmp_path, monkeypatch):
    """However many reports each stall for as long as one may."""
    monkeypatch.setattr(exchange, "DEADLINE_SECONDS", 0.3)
    monkeypatch.setattr(sending, "LONGEST_FLUSH_SECONDS", 0.5)
    with raw_server(silent) as url:
        device = consenting(tmp_path, "4", url)
        for number in range(12):
            device.answer(
                Study(studies.document(studies.with_epsilon(studies.YES_NO, "0.1"), id=f"s{number}")), YES
            )
        start = time.monotonic()
        assert device.flush(attempts=1).waiting == 12
        assert time.monotonic() - start < 3


def test_an_endless_answer_is_not_read():
    def endless(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        for _ in range(3000):
            connection.sendall(b" " * (1 << 16))

    with raw_server(endless) as url:
        assert put_report(f"{url}/x", "{}").state == "kept"


def test_nothing_for_this_machine_goes_through_a_proxy(tmp_path, monkeypatch):
    with Server() as proxy, Server(STUDY.canonical()) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
            monkeypatch.setenv(name.upper(), proxy.url)
        device = consenting(tmp_path, "4", server.url)
        device.answer(device.fetch("survey"), YES)
        assert device.flush(attempts=1).sent == 1
        assert proxy.requests == []
        assert len(server.requests) == 2


def test_a_name_that_begins_like_an_address_of_this_machine_is_none(monkeypatch):
    with Server() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        put_report("http://127.elsewhere.example/x", "{}")
        assert len(proxy.requests) == 1


SUMMARY = b'{"format":"ldpkit.summary/1"}'


@pytest.mark.parametrize("body", [b"", b"{}", b"<html>Sign in</html>", b'{"format":1}', b"[]", b"\xff"])
def test_what_is_no_summary_is_not_kept_as_one(body):
    with Server(body) as server, pytest.raises(TransferError, match="is no summary"):
        fetch_summary(server.url, "survey", "key")


def test_no_key_of_an_operator_goes_through_a_proxy_to_this_machine(monkeypatch):
    with Server() as proxy, Server(SUMMARY) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert fetch_summary(server.url, "survey", "key") == SUMMARY.decode()
        NodeClient(server.url, "survey", "key").document(1)
        assert (proxy.requests, len(server.requests)) == ([], 2)


def test_what_a_server_tells_an_operator_is_cut_and_clean():
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


def dripping_chunks(connection):
    """The length of a chunk, which http.client reads as one line."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(100):
        connection.sendall(b"0")
        time.sleep(0.05)


def dripping_refusal(connection):
    connection.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(100):
        connection.sendall(b" ")
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("command", OPERATORS)
@pytest.mark.parametrize(
    "answer", [silent, dripping_headers, dripping_body, dripping_chunks, dripping_refusal]
)
def test_no_server_holds_an_operators_command(monkeypatch, command, answer):
    monkeypatch.setattr(client, "MOST_WAITING_SECONDS", 0.5)
    monkeypatch.setattr(download, "DEADLINE_SECONDS", 0.5)
    monkeypatch.setattr(nodes, "DEADLINE_SECONDS", 0.5)
    monkeypatch.setattr(exchange, "FIRST_DELAY_SECONDS", 0.01)
    with raw_server(answer) as url:
        start = time.monotonic()
        with pytest.raises(TransferError, match=r"no whole answer in|too slowly"):
            OPERATORS[command](url)
        assert time.monotonic() - start < 3


def test_an_export_may_take_long_while_it_comes(monkeypatch):
    """And what the reader does meanwhile takes none of the server's time."""
    monkeypatch.setattr(client, "MOST_WAITING_SECONDS", 1.0)
    monkeypatch.setattr(client, "SLOWEST_BYTES", 100)
    piece = b" " * 100

    def steady(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n")
        for _ in range(20):
            connection.sendall(piece)
            time.sleep(0.1)

    with raw_server(steady) as url:
        came = 0
        with client.stream(url, "key", "it", client.Allowance()) as pieces:
            for some in pieces:
                came += len(some)
                time.sleep(1.2 if came < 200 else 0)
    assert came == 2000


def test_a_line_without_an_end_is_not_kept_in_memory(monkeypatch):
    monkeypatch.setattr(download, "MAX_BYTES", 1 << 20)
    sent = []

    def endless(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1000):
            connection.sendall(b"x" * (1 << 16))
            sent.append(1 << 16)

    with raw_server(endless) as url, pytest.raises(TransferError, match="line of more than"):
        list(fetch_reports(url, "survey", "key"))
    assert sum(sent) < 16 << 20


def test_an_answer_that_breaks_off_is_none():
    def broken(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nwhole")

    with raw_server(broken) as url, pytest.raises(TransferError, match="cut off"):
        exchange.exchange(urllib.request.Request(url))


def test_an_issuer_that_stalls_holds_a_flush_up_for_its_deadline_alone(tmp_path, monkeypatch):
    """And the report that waits for its token keeps no other from its way."""
    monkeypatch.setattr("ldp_client.device.exchange.DEADLINE_SECONDS", 3)
    over = threading.Event()
    with Server() as collector, Issuer() as issuer:
        device = consenting(tmp_path, "8", collector.url)
        device.answer(study_of(issuer.url, id="tokened"), {"ever": True}, "CODE")
        device.answer(Study(studies.document(studies.YES_NO, id="plain")), {"ever": True})
        issuer.answers = [lambda *_: over.wait(60) and None]
        start = time.monotonic()
        flushed = device.flush(attempts=1)
        assert time.monotonic() - start < 20
        over.set()
        assert (flushed.sent, flushed.waiting) == (1, 1)
        assert "no whole answer" in flushed.reason
        assert device.flush(attempts=1).later == 1
