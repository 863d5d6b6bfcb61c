"""A relay (RFC 9458): takes an encapsulated request from anybody, and brings it to one gateway as its own.

It passes on the body and its media type, nothing else that came, and writes down nothing. It hides who sends
only where another operator runs it than the collector's, and the two do not put together what they see.
"""

from __future__ import annotations

import signal
import socket
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Timer
from typing import Any

from ldp_client.device.exchange import Answer, exchange
from ldp_client.device.policy import Policy
from ldp_client.documents.errors import InputError, TransferError, UsageError
from ldp_client.oblivious.encapsulation import ANSWER_TYPE, REQUEST_TYPE

# Of a body either way; a collector takes 1 MiB unless its operator says otherwise.
MOST_BYTES = 2 << 20
# Of a stated length: leading zeros hide none.
MOST_DIGITS = 12
MOST_CONNECTIONS = 256
# Of a connection, from its first byte to its last, and of the gateway's part in it: the same for everybody.
CONNECTION_SECONDS = 30.0
GATEWAY_SECONDS = 15.0
SILENCE_SECONDS = 10.0
PROBLEM_TYPE = "application/problem+json"
# A page in a browser sends from another origin, and asks first.
FOR_PAGES = (("Access-Control-Allow-Origin", "*"), ("Access-Control-Expose-Headers", "Retry-After"))
ASKED_FIRST = (
    ("Access-Control-Allow-Methods", "POST"),
    ("Access-Control-Allow-Headers", "Content-Type"),
    ("Access-Control-Max-Age", "7200"),
)


class Relay(ThreadingHTTPServer):
    """A relay that listens. gateway: the URL that it forwards to.

    Raises InputError for a wrong one, such as a collector's own, which answers 405 to whatever comes.
    """

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, gateway: str, host: str, port: int) -> None:
        # https, but for this machine.
        self.gateway = Policy("1", None, "1", None, None).base_url(gateway)
        if "/" not in self.gateway.partition("://")[2]:
            raise UsageError(
                f"--to {gateway}: is no gateway's; a collector's is {self.gateway}/ohttp",
                code="oblivious.wrong_gateway",
            )
        self.room = BoundedSemaphore(MOST_CONNECTIONS)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler)
        except (OSError, OverflowError) as error:
            raise InputError(
                f"cannot listen on {host} port {port}: {error}", code="server.port_not_free"
            ) from error

    @property
    def url(self) -> str:
        """Where it is reached, on this machine."""
        host, port = self.server_address[:2]
        shown = str(host)
        return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own; above MOST_CONNECTIONS the connection is closed at once."""
        if not self.room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """One connection, ended after CONNECTION_SECONDS however slowly it goes on."""
        cut = Timer(CONNECTION_SECONDS, _cut, [request])
        cut.daemon = True
        cut.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            cut.cancel()
            self.room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: the line would have an address and a time."""


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class Handler(BaseHTTPRequestHandler):
    """One request of one connection."""

    server: Relay
    timeout = SILENCE_SECONDS
    server_version = "relay"
    sys_version = ""

    def do_OPTIONS(self) -> None:
        """What a browser asks before it sends for a page."""
        self._say(204, b"", ASKED_FIRST)

    def do_POST(self) -> None:
        """Forward one encapsulated request, and bring its answer back."""
        length = self.headers.get("Content-Length", "")
        if self.headers.get_content_type() != REQUEST_TYPE:
            self._say(415)
        elif not (length.isascii() and length.isdecimal()):
            self._say(411)
        elif len(length) > MOST_DIGITS or int(length) > MOST_BYTES:
            self._say(413)
        else:
            body = self.rfile.read(int(length))
            if len(body) == int(length):
                self._pass_on(forwarded(self.server.gateway, body))

    def _pass_on(self, answer: Answer | None) -> None:
        """The gateway's answer, encapsulated or its own refusal; of anything else that there was none."""
        kind = answer.headers.get_content_type() if answer else ""
        is_opened = answer is not None and answer.status == 200 and kind == ANSWER_TYPE
        is_refusal = answer is not None and answer.status >= 400 and kind == PROBLEM_TYPE
        if answer is None or len(answer.body) > MOST_BYTES or not (is_opened or is_refusal):
            self._say(502)
            return
        retry = answer.headers.get("Retry-After", "")
        told = (("Retry-After", retry),) if retry.isdecimal() else ()
        self._say(answer.status, answer.body, (("Content-Type", kind), *told))

    def _say(self, status: int, body: bytes = b"", headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.send_response_only(status)
        for name, value in (*headers, *FOR_PAGES, ("Cache-Control", "no-store"), ("Connection", "close")):
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Write down nothing: who sent when is what a relay is there to forget."""


def forwarded(gateway: str, body: bytes) -> Answer | None:
    """What the gateway answers, None where it does not; each time on a new connection of the relay's own."""
    headers = {"Content-Type": REQUEST_TYPE, "User-Agent": "relay"}
    request = urllib.request.Request(gateway, body, headers, method="POST")
    try:
        return exchange(request, MOST_BYTES, GATEWAY_SECONDS, SILENCE_SECONDS)
    except TransferError:
        return None


def serve(gateway: str, host: str, port: int, announce: Callable[[str], None]) -> None:
    """Forward until SIGTERM or SIGINT. announce: called once with the relay's URL when it listens.

    Raises InputError for a URL or an address that cannot be used.
    """

    def stop(*_: Any) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, stop)
    with Relay(gateway, host, port) as relay, suppress(KeyboardInterrupt):
        announce(relay.url)
        relay.serve_forever()
