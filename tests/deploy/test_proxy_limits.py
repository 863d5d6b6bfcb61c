"""The composed proxy asks a node about the key before it reads a body or gives one of its places away.

Known limit: who has a node's key can hold them; who has none still costs the node a look at each key.
"""

from __future__ import annotations

import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from collector.nodes.app import OPERATIONS
from tests.deploy.containers import DEPLOY
from tests.kit.programs import need, which
from tests.kit.serving import LocalServer

PROXY = (DEPLOY / "container/nginx.conf").read_text()
EACH, MANY, ALL = (
    int(re.findall(rf"^    limit_conn {zone} (\d+);", PROXY, re.M)[0]) for zone in ("each", "many", "all")
)
NAT, OTHER, RELAY = "127.0.0.1", "127.0.0.2", "127.0.0.3"
SECONDS = 20
KEY = "Bearer of-the-operator"
NODE_ROUTES = [
    (operation.method.upper(), re.sub(r"{\w+}", "[^/]+", operation.path)) for operation in OPERATIONS
]


class Behind(LocalServer):
    """A collector that answers nobody before `go`, and a node. held: released once for each who waits."""

    def __init__(self) -> None:
        super().__init__(Answer)
        self.http.held = self.held = threading.Semaphore(0)
        self.http.go = self.go = threading.Event()
        # As many as may wait in a test.
        self.http.socket.listen(1024)


class Answer(BaseHTTPRequestHandler):
    """Refuses a request without a key, unless a node has no such route; with a key, knows no study."""

    def do_GET(self) -> None:
        if self.path == "/":
            self.server.held.release()
            self.server.go.wait(SECONDS)
        is_route = self.path == "/" or any(
            self.command == method and re.fullmatch(path, self.path) for method, path in NODE_ROUTES
        )
        has_key = self.headers.get("Authorization") == KEY
        self.send_response(404 if has_key or not is_route else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def behind() -> Iterator[Behind]:
    with Behind() as server:
        yield server
        server.go.set()


@pytest.fixture
def nodes(behind: Behind, tmp_path: Path, port: int) -> Iterator[int]:
    """The composed proxy without TLS, with one relay named, in front of one server for all; its port."""
    need("nginx")
    text = re.sub(r"^ *ssl_.*$", "", PROXY, flags=re.M).replace("listen 8443 ssl", f"listen {port}")
    text = text.replace("worker_processes auto;", "daemon off; user root;").replace("/tmp/", f"{tmp_path}/")
    text = re.sub(r"//(collector|node-[ab]):8000", f"//127.0.0.1:{behind.http.server_port}", text)
    text = text.replace("default 0;", f"default 0; {RELAY} 1;", 1)
    settings = tmp_path / "nginx.conf"
    settings.write_text(text)
    process = subprocess.Popen([which("nginx"), "-p", tmp_path, "-c", settings, "-e", "stderr"])
    yield port
    process.terminate()
    process.wait(timeout=SECONDS)


GET = "GET / HTTP/1.1\r\nHost: collector.example\r\nConnection: close\r\n\r\n"


def asked(port: int, address: str, request: str = GET) -> socket.socket:
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


@pytest.mark.slow
def test_proxy_limits_connections_per_address(nodes: int, behind: Behind) -> None:
    """One address opens many connections: others' requests still pass, also a relay's for many people."""
    assert 2 * MANY <= ALL
    people = [asked(nodes, NAT) for _ in range(EACH)]
    assert all(behind.held.acquire(timeout=SECONDS) for _ in people)
    assert status(asked(nodes, NAT)) == 503
    others = [asked(nodes, OTHER), *(asked(nodes, RELAY) for _ in range(MANY))]
    assert all(behind.held.acquire(timeout=SECONDS) for _ in others)
    assert status(asked(nodes, RELAY)) == 503
    behind.go.set()
    # They came through, and have no key.
    assert {status(one) for one in (*people, *others)} == {401}
    assert status(asked(nodes, NAT)) == 401


def closing(node: str, key: str, study: str = "habits", sent: str = "{", size: int = 60_000_000) -> str:
    """A `secure-sum close` of which so much of the body is sent."""
    return (
        f"POST /v1/studies/{study}/sum HTTP/1.1\r\nHost: {node}.example\r\nAuthorization: {key}\r\n"
        f"Content-Length: {size}\r\nConnection: close\r\n\r\n{sent}"
    )


@pytest.mark.slow
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
