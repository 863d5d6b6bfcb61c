"""An issuer that does as told: blind tokens for tickets, over HTTP, from any page."""

from __future__ import annotations

import hashlib
import json
import threading
from base64 import b64encode
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa

from ldp_client.documents.channel import MODULUS_BYTES, SPKI_HEAD, SPKI_TAIL
from tests.portable.site import POLL_SECONDS

REQUEST, RESPONSE = "application/private-token-request", "application/private-token-response"
PROBLEM = "application/problem+json"
REQUEST_BYTES = 259


class Key:
    """A key that tokens are signed with, and its bytes in a study."""

    def __init__(self) -> None:
        numbers = rsa.generate_private_key(
            public_exponent=65537, key_size=8 * MODULUS_BYTES
        ).private_numbers()
        self.modulus, self.secret = numbers.public_numbers.n, numbers.d
        self.spki = SPKI_HEAD + self.modulus.to_bytes(MODULUS_BYTES, "big") + SPKI_TAIL
        self.stated = b64encode(self.spki).decode()

    @property
    def short_id(self) -> int:
        return hashlib.sha256(self.spki).digest()[-1]

    def sign(self, blinded: bytes) -> bytes:
        """The private operation alone."""
        return pow(int.from_bytes(blinded, "big"), self.secret, self.modulus).to_bytes(MODULUS_BYTES, "big")


@cache
def keys() -> tuple[Key, Key]:
    """Two, whose short ids differ, until the next issuer opens."""
    first, second = Key(), Key()
    while first.short_id == second.short_id:
        second = Key()
    return first, second


class TokenIssuer:
    """url: where it listens. strata: {ticket: the place of its key}. asked: (ticket, body), in order.

    given: {ticket: (body, answer)}, of those that were used. told: what the next requests are answered in
    place of a token: "lost" (nothing comes, but it was given), "forged", or (status, problem, more of it).
    """

    def __init__(self) -> None:
        # No collector takes a study that has another one's.
        keys.cache_clear()
        self.strata: dict[str, int] = {}
        self.asked: list[tuple[str, bytes]] = []
        self.told: list[Any] = []
        self.given: dict[str, tuple[bytes, bytes]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=[POLL_SECONDS])
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def channel(self, *strata: dict[str, str], hours: int = 24) -> dict[str, Any]:
        """A study's channel with one key, or with one for each of the strata."""
        stated = [{"key": key.stated, "public": one} for key, one in zip(keys(), strata)]
        tokens = {"issuer": self.url, "keys": stated or [{"key": keys()[0].stated}]}
        return {"batches": {"hours": hours}, "tickets": tokens}

    def answer(self, code: str, body: bytes) -> tuple[int, str, bytes] | None:
        """Status, media type and body; None where nothing comes."""
        self.asked.append((code, body))
        told = self.told.pop(0) if self.told else None
        if isinstance(told, tuple):
            return _problem(*told)
        if told == "forged":
            return 200, RESPONSE, keys()[1].sign(body[3:])
        status, media_type, content = self._judged(code, body)
        return None if told == "lost" else (status, media_type, content)

    def _judged(self, code: str, body: bytes) -> tuple[int, str, bytes]:
        found = [place for place, key in enumerate(keys()) if key.short_id == body[2]]
        if len(body) != REQUEST_BYTES or body[:2] != b"\x00\x02" or not found:
            return _problem(422, "token-key-unknown")
        if code not in self.strata:
            return _problem(401, "ticket-needed")
        if found != [self.strata[code]]:
            place = self.strata[code]
            return _problem(409, "token-key-other", {"key": place, "key_id": keys()[place].short_id})
        known, signed = self.given.setdefault(code, (body, keys()[found[0]].sign(body[3:])))
        return (200, RESPONSE, signed) if known == body else _problem(409, "ticket-spent")


def _problem(status: int, name: str, more: dict[str, Any] | None = None) -> tuple[int, str, bytes]:
    said = {"type": f"urn:ldpkit:problem:{name}", "title": name, "status": status, **(more or {})}
    return status, PROBLEM, json.dumps(said).encode()


def _handler(issuer: TokenIssuer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_OPTIONS(self) -> None:
            self._send(204, "text/plain", b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            assert self.path == "/v1/tokens"
            assert self.headers["Content-Type"] == REQUEST
            answer = issuer.answer(self.headers.get("LDPKit-Ticket", ""), body)
            if answer is None:
                self.close_connection = True
                return
            self._send(*answer)

        def _send(self, status: int, media_type: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Access-Control-Allow-Origin", "*")
            self.send_header("Access-Control-Allow-Headers", "Content-Type, LDPKit-Ticket")
            self.send_header("Content-Type", media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: Any) -> None:
            """Nothing."""

    return Handler
