"""Honest devices are kept out of a running server: slow, idle and many connections, bombs, floods."""

from __future__ import annotations

import gzip
import http.client
import os
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from ldp_client.documents.report import report_id_of
from tests.collector.conftest import TOKEN, Server, build_report, build_study

REPORTS = 40
SECONDS = 60
MOST_ANSWERED = 40_000
PATH = "/v1/studies/habits/reports"
BOMB = gzip.compress(b'{"reports":[' + b"{}," * 99_998 + b"{}]}")


def head(method, path, length, *fields):
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Content-Length: {length}", *fields]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def bomb():
    return head("POST", PATH, len(BOMB), "Content-Type: application/json", "Content-Encoding: gzip") + BOMB


def deletion():
    secret = os.urandom(16)
    return head("DELETE", f"{PATH}/{report_id_of(secret)}", 0, f"LDPKit-Withdrawal: {secret.hex()}")


def wrong_key():
    return head("GET", "/metrics", 0, f"Authorization: Bearer {os.urandom(8).hex()}")


def wrong_batch():
    body = b'{"reports":[' + b'{"id":"00000000000000000000000000000000"},' * 3000 + b"1]}"
    return head("POST", PATH, len(body), "Content-Type: application/json") + body


# On so many connections at once: what is sent, again and again where it is whole.
ATTACKS = {
    "half a head": (150, lambda: b"GET /healthz HTTP/1.1\r\nHost:"),
    "nothing": (150, lambda: b""),
    "a tiny body that never ends": (40, lambda: head("PUT", f"{PATH}/{'0' * 32}", 900) + b"{"),
    "bombs": (2, bomb),
    "wrong batches": (2, wrong_batch),
    "deletions": (4, deletion),
    "wrong keys": (4, wrong_key),
}


def answered(connection):
    """How many bytes one answer has: a single read may hold a part of it, or the next one's beginning."""
    response = http.client.HTTPResponse(connection)
    response.begin()
    return len(str(response.msg)) + len(response.read())


@contextmanager
def attacked(server, name):
    """A bounded attack for as long as the block lasts."""
    count, make = ATTACKS[name]
    parts = urlsplit(server.url)
    over, longest = threading.Event(), [0]

    def send(connection):
        with suppress(OSError, http.client.HTTPException):
            for _ in range(2000):
                connection.sendall(make())
                if count > 4:
                    return
                longest[0] = max(longest[0], answered(connection))
                if over.wait(0.01):
                    return

    with ExitStack() as held:
        threads = []
        for _ in range(count):
            connection = socket.create_connection((parts.hostname, parts.port), timeout=SECONDS)
            held.enter_context(connection)
            threads.append(threading.Thread(target=send, args=(connection,), daemon=True))
            threads[-1].start()
        time.sleep(0.3)
        try:
            yield
        finally:
            over.set()
    for thread in threads:
        thread.join(SECONDS)
    assert longest[0] < MOST_ANSWERED


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_honest_devices_get_through(flooded, name):
    study = build_study()
    parts = urlsplit(flooded.url)
    with attacked(flooded, name):
        client = http.client.HTTPConnection(parts.hostname, parts.port, timeout=SECONDS)
        statuses = []
        for _ in range(REPORTS):
            report = build_report(study)
            client.request(
                "PUT", f"{PATH}/{report.id}", report.to_json(), {"Content-Type": "application/json"}
            )
            response = client.getresponse()
            response.read()
            statuses.append(response.status)
        assert statuses == [201] * REPORTS
        client.request("GET", "/v1/studies/habits/export", headers={"Authorization": f"Bearer {TOKEN}"})
        response = client.getresponse()
        assert (response.status, len(response.read().splitlines()) > REPORTS) == (200, True)
        client.close()


@pytest.fixture(scope="module")
def flooded(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("flooded"))
    server.request("POST", "/v1/studies", build_study().document)
    yield server
    server.kill()
