"""The composed proxy asks a node about the key before it reads a body or gives one of its places away.

Known limit: who has a node's key can hold them; who has none still costs the node a look at each key.
"""

from __future__ import annotations

import re
import select
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.kit.programs import need, which

PROXY = (Path(__file__).resolve().parents[2] / "deploy/container/nginx.conf").read_text()
NAT, OTHER = "127.0.0.1", "127.0.0.2"
SECONDS = 20
KEY = "Bearer of-the-operator"


class Answer(BaseHTTPRequestHandler):
    """A node that refuses who has no key; to who has it, no study is known."""

    def do_GET(self) -> None:
        self.send_response(404 if self.headers.get("Authorization") == KEY else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def behind() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def running(folder: Path) -> Iterator[None]:
    """nginx with the settings of a folder."""
    need("nginx")
    process = subprocess.Popen(
        [which("nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=SECONDS)


@pytest.fixture
def nodes(behind: ThreadingHTTPServer, tmp_path: Path, port: int) -> Iterator[int]:
    """The composed proxy as it is, but without TLS, in front of one server for all; its port."""
    text = re.sub(r"^ *ssl_.*$", "", PROXY, flags=re.M).replace("listen 8443 ssl", f"listen {port}")
    text = text.replace("worker_processes auto;", "daemon off; user root;").replace("/tmp/", f"{tmp_path}/")
    text = re.sub(r"//(collector|node-[ab]):8000", f"//127.0.0.1:{behind.server_address[1]}", text)
    (tmp_path / "nginx.conf").write_text(text)
    with running(tmp_path):
        yield port


def asked(port: int, address: str, request: str) -> socket.socket:
    """A request of somebody at that address, under way."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            one = socket.create_connection(("127.0.0.1", port), SECONDS, source_address=(address, 0))
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    one.sendall(request.encode())
    return one


def status(one: socket.socket) -> int:
    with one:
        return int(one.recv(64).split()[1])


def is_answered(one: socket.socket) -> bool:
    """Whether an answer has come; what has one is closed."""
    answered = bool(select.select([one], [], [], 0)[0])
    if answered:
        one.close()
    return answered


def closing(node: str, key: str, study: str = "habits", sent: str = "{", size: int = 60_000_000) -> str:
    """A `secure-sum close` of which so much of the body is sent."""
    return (
        f"POST /v1/studies/{study}/set HTTP/1.1\r\nHost: {node}.example\r\nAuthorization: {key}\r\n"
        f"Content-Length: {size}\r\nConnection: close\r\n\r\n{sent}"
    )


@pytest.mark.attack(15)
def test_requests_without_key_hold_no_closing_slot(nodes: int) -> None:
    """Strangers hold the node's two places with bodies that never end; paths try to avoid the key check."""
    # What stands for itself in an address, and not for the study: it leads to no address without a key.
    studies = ["habits", "habits", "habits", "a%3Fb", "a%23b", "a%2562", "a%0Ab", "%252e%252e"]
    strangers = [
        asked(nodes, address, closing("node-a", key, study))
        for study in studies
        for address in (NAT, OTHER)
        for key in ("", "Bearer of-nobody")
    ]
    assert [int(one.recv(64).split()[1]) for one in strangers] == [401] * len(strangers)
    whole = closing("node-a", KEY, sent="{}", size=2)
    assert status(asked(nodes, NAT, whole)) == 404
    for one in strangers:
        one.close()


def test_closings_of_one_node_leave_slots_for_other_node(nodes: int) -> None:
    (most,) = set(re.findall(r"limit_conn closings (\d+);", PROXY))
    held = [asked(nodes, OTHER, closing("node-a", KEY)) for _ in range(int(most))]
    deadline = time.monotonic() + SECONDS
    while status(asked(nodes, NAT, closing("node-a", KEY, sent="{}", size=2))) != 503:
        assert time.monotonic() < deadline
        # The request above may have had the place of one of these when that one came: it comes again.
        held = [asked(nodes, OTHER, closing("node-a", KEY)) if is_answered(one) else one for one in held]
    assert status(asked(nodes, NAT, closing("node-b", KEY, sent="{}", size=2))) == 404
    for one in held:
        one.close()
