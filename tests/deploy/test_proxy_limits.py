"""The composed proxy's bounds on requests, by nginx itself: of people behind a NAT, a relay, strangers.

Defence: The proxy: asks the node about the key before it reads a body or gives one of the node's two places
away. Known limit: who has a node's key can hold them; who has none still costs the node a look at each key.
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
EACH, MANY, ALL = (
    int(re.findall(rf"^    limit_conn {zone} (\d+);", PROXY, re.M)[0]) for zone in ("each", "many", "all")
)
NAT, OTHER, RELAY = "127.0.0.1", "127.0.0.2", "127.0.0.3"
SECONDS = 20
KEY = "Bearer of-the-operator"


class Holding(ThreadingHTTPServer):
    """Answers nobody before `go`. held: how many wait."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self) -> None:
        self.held, self.go, self._lock = 0, threading.Event(), threading.Lock()
        super().__init__(("127.0.0.1", 0), _Answer)

    def hold(self) -> None:
        with self._lock:
            self.held += 1
        self.go.wait(SECONDS)


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Holding)
        if self.path.endswith("/drawing"):
            self._as_a_node()
            return
        self.server.hold()
        self.send_response(204)
        self.end_headers()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._as_a_node()

    def _as_a_node(self) -> None:
        """Refuse who has no key; to who has it, no study is known."""
        has_key = self.headers.get("Authorization") == KEY
        self.send_response(404 if has_key else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def behind() -> Iterator[Holding]:
    server = Holding()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.go.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def proxy(behind: Holding, tmp_path: Path, port: int) -> Iterator[int]:
    """nginx with the limits of the composed one, one relay named in them; its port."""
    limits = PROXY[PROXY.index("    geo $is_of_many") : PROXY.index("    client_max_body_size")]
    limits = limits.replace("default 0;", f"default 0; {RELAY} 1;", 1)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = " ".join(f"{kind}_temp_path {tmp_path}/{kind};" for kind in kinds)
    to = f"proxy_pass http://127.0.0.1:{behind.server_address[1]};"
    text = (
        f"daemon off; pid {tmp_path}/pid; error_log stderr emerg; events {{ worker_connections 4096; }}\n"
        f"http {{ access_log off; {places}\n{limits}\n"
        f"server {{ listen {port}; location / {{ {to} }} }} }}"
    )
    (tmp_path / "nginx.conf").write_text(text)
    with running(tmp_path):
        yield port


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
def nodes(behind: Holding, tmp_path: Path, port: int) -> Iterator[int]:
    """The composed proxy as it is, but without TLS, in front of one server for all; its port."""
    text = re.sub(r"^ *ssl_.*$", "", PROXY, flags=re.M).replace("listen 8443 ssl", f"listen {port}")
    text = text.replace("worker_processes auto;", "daemon off; user root;").replace("/tmp/", f"{tmp_path}/")
    text = re.sub(r"//(collector|node-[ab]):8000", f"//127.0.0.1:{behind.server_address[1]}", text)
    (tmp_path / "nginx.conf").write_text(text)
    with running(tmp_path):
        yield port


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


def wait_for(behind: Holding, held: int) -> None:
    deadline = time.monotonic() + SECONDS
    while behind.held < held:
        assert time.monotonic() < deadline, behind.held
        time.sleep(0.01)


def status(one: socket.socket) -> int:
    with one:
        return int(one.recv(64).split()[1])


def is_answered(one: socket.socket) -> bool:
    """Whether an answer has come; what has one is closed."""
    answered = bool(select.select([one], [], [], 0)[0])
    if answered:
        one.close()
    return answered


def test_proxy_limits_connections_per_address(proxy: int, behind: Holding) -> None:
    assert 2 * MANY <= ALL
    people = [asked(proxy, NAT) for _ in range(EACH)]
    wait_for(behind, EACH)
    assert status(asked(proxy, NAT)) == 503
    people.append(asked(proxy, OTHER))
    people += [asked(proxy, RELAY) for _ in range(MANY)]
    wait_for(behind, EACH + 1 + MANY)
    assert status(asked(proxy, RELAY)) == 503
    behind.go.set()
    assert {status(one) for one in people} == {204}
    assert status(asked(proxy, NAT)) == 204


def closing(node: str, key: str, study: str = "habits", sent: str = "{", size: int = 60_000_000) -> str:
    """A `secure-sum close` of which so much of the body is sent."""
    return (
        f"POST /v1/studies/{study}/set HTTP/1.1\r\nHost: {node}.example\r\nAuthorization: {key}\r\n"
        f"Content-Length: {size}\r\nConnection: close\r\n\r\n{sent}"
    )


def test_requests_without_key_hold_no_closing_slot(nodes: int) -> None:
    """Four such requests used to block every closing; now they are refused before the body arrives."""
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
