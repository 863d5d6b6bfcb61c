"""The composed proxy's bounds on requests of one address, by nginx itself: people behind a NAT, a relay."""

from __future__ import annotations

import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

NGINX = "/usr/sbin/nginx"
PROXY = (Path(__file__).resolve().parents[2] / "deploy/container/nginx.conf").read_text()
EACH, MANY, ALL = (
    int(re.findall(rf"^    limit_conn {zone} (\d+);", PROXY, re.M)[0]) for zone in ("each", "many", "all")
)
NAT, OTHER, RELAY = "127.0.0.1", "127.0.0.2", "127.0.0.3"
SECONDS = 20


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
        self.server.hold()
        self.send_response(204)
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
def proxy(behind: Holding, tmp_path: Path) -> Iterator[int]:
    """nginx with the limits of the composed one, one relay named in them; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
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
    process = subprocess.Popen(
        [NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-e", "stderr"]
    )
    yield port
    process.terminate()
    process.wait(timeout=SECONDS)


def asked(port: int, address: str) -> socket.socket:
    """A request of somebody at that address, under way."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            one = socket.create_connection(("127.0.0.1", port), SECONDS, source_address=(address, 0))
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    one.sendall(b"GET / HTTP/1.1\r\nHost: collector.example\r\nConnection: close\r\n\r\n")
    return one


def wait_for(behind: Holding, held: int) -> None:
    deadline = time.monotonic() + SECONDS
    while behind.held < held:
        assert time.monotonic() < deadline, behind.held
        time.sleep(0.01)


def status(one: socket.socket) -> int:
    with one:
        return int(one.recv(64).split()[1])


def test_an_address_has_its_bound_and_one_of_many_people_a_larger_one(proxy: int, behind: Holding) -> None:
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
