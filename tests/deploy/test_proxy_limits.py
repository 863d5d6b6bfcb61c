"""The composed proxy asks a node about the key before it reads a body or gives one of its places away.

Known limit: who has a node's key can hold them; who has none still costs the node a look at each key.
"""

import re
import socket
from http.server import BaseHTTPRequestHandler

import pytest

from collector.nodes.app import OPERATIONS
from tests.deploy.containers import DEPLOY
from tests.kit.collectors import is_open, running, wait_for
from tests.kit.programs import need, which
from tests.kit.serving import LocalServer

PROXY = (DEPLOY / "container/nginx.conf").read_text()
NAT, OTHER, RELAY = "127.0.0.1", "127.0.0.2", "127.0.0.3"
SECONDS = 20
KEY = "Bearer of-the-operator"
NODE_ROUTES = [
    (operation.method.upper(), re.sub(r"{\w+}", "[^/]+", operation.path)) for operation in OPERATIONS
]


class Answer(BaseHTTPRequestHandler):
    """Refuses a request without a key, unless a node has no such route; with a key, knows no study."""

    def do_GET(self):
        is_route = self.path == "/" or any(
            self.command == method and re.fullmatch(path, self.path) for method, path in NODE_ROUTES
        )
        has_key = self.headers.get("Authorization") == KEY
        self.send_response(404 if has_key or not is_route else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def proxy(tmp_path, port):
    """The composed proxy without TLS, with one relay named, in front of one server for all; its port."""
    need("nginx")
    with LocalServer(Answer) as behind:
        text = re.sub(r"^ *ssl_.*$", "", PROXY, flags=re.M).replace("listen 8443 ssl", f"listen {port}")
        text = text.replace("worker_processes auto;", "daemon off; user root;").replace(
            "/tmp/", f"{tmp_path}/"
        )
        text = re.sub(r"//(collector|node-[ab]):8000", f"//127.0.0.1:{behind.http.server_port}", text)
        text = text.replace("default 0;", f"default 0; {RELAY} 1;", 1)
        # Bodies that never end are waited for as long as the test.
        text = re.sub(r"client_body_timeout \d+s", f"client_body_timeout {SECONDS}s", text)
        settings = tmp_path / "nginx.conf"
        settings.write_text(text)
        command = [which("nginx"), "-p", tmp_path, "-c", settings, "-e", "stderr"]
        with running(command, tmp_path / "nginx.log", lambda: is_open(port)):
            yield port


def asked(port, address, host="collector", path="/", key="", body="", size=0):
    """A request of somebody at that address, of which this much of the body is sent."""
    connection = socket.create_connection(("127.0.0.1", port), SECONDS, source_address=(address, 0))
    method = "POST" if size else "GET"
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}.example\r\nAuthorization: {key}\r\n"
    connection.sendall(f"{head}Content-Length: {size}\r\nConnection: close\r\n\r\n{body}".encode())
    return connection


def status(connection):
    return int(connection.recv(64).split()[1])


@pytest.mark.slow
def test_proxy_limits_connections_per_address(proxy):
    """One address opens many connections: others' requests still pass, also a relay's for many people."""
    each, many, most = (
        int(re.search(rf"limit_conn {zone} (\d+);", PROXY)[1]) for zone in ("each", "many", "all")
    )
    assert 2 * many <= most
    held = [asked(proxy, NAT, body="{", size=9) for _ in range(each)]
    held += [asked(proxy, RELAY, body="{", size=9) for _ in range(many - 1)]
    wait_for(lambda: status(asked(proxy, NAT)) == 503, SECONDS)
    assert [status(asked(proxy, address)) for address in (OTHER, RELAY)] == [401, 401]
    for connection in held:
        connection.close()


@pytest.mark.slow
@pytest.mark.attack(15)
def test_requests_without_key_hold_no_closing_slot(proxy):
    """Strangers hold the node's two places with bodies that never end; paths try to avoid the key check."""

    def close(address, key, study="habits", body="{", size=60_000_000):
        return asked(proxy, address, "node-a", f"/v1/studies/{study}/sum", key, body, size)

    # What stands for itself in an address, and not for the study: it leads to no address without a key.
    studies = ["habits", "habits", "habits", "a%3Fb", "a%23b", "a%2562", "a%0Ab", "%252e%252e"]
    strangers = [
        close(address, key, study)
        for study in studies
        for address in (NAT, OTHER)
        for key in ("", "Bearer of-nobody")
    ]
    assert [status(stranger) for stranger in strangers] == [401] * len(strangers)
    assert status(close(NAT, KEY, body="{}", size=2)) == 404
    for stranger in strangers:
        stranger.close()
