"""One HTTP request and its whole answer, within one deadline.

TLS certificates are verified, and no redirect is followed. Requests to this machine use no proxy. Other
requests use https; a proxy that `https_proxy` names sees their host and port.
"""

import contextlib
import json
import socket
import ssl
import threading
import urllib.error
import urllib.request
from email.message import Message
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from random import SystemRandom
from socket import SHUT_RDWR
from typing import Any, NamedTuple

from ldp_client.device.arguments import is_here
from ldp_client.documents.errors import TransferError
from ldp_client.documents.fields import printable

# For name lookup, connection, headers and body together; then for each wait for the network.
DEADLINE_SECONDS = 20.0
TIMEOUT_SECONDS = 10.0
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 60.0
MOST_BYTES = 1 << 16
# A longer error text is cut.
MOST_CHARACTERS = 160
# The type of a collector's own problem documents begins with this.
PROBLEM_PREFIX = "urn:ldpkit:problem:"
# Draws pauses, and which report leaves next. `random` would repeat its draws in a program that seeds it.
CHANCE = SystemRandom()


class Answer(NamedTuple):
    """The answer to a request. body: at most one byte more than was requested."""

    status: int
    headers: Message
    body: bytes

    @property
    def media_type(self) -> str:
        """Return the media type without parameters."""
        return printable(self.headers.get("Content-Type", "").partition(";")[0].strip().lower())

    @property
    def document(self) -> dict[str, Any]:
        """Return the JSON object in the body, {} for anything else."""
        if self.media_type not in ("application/json", "application/problem+json"):
            return {}
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    @property
    def problem(self) -> str | None:
        """Return the name of the collector's own problem, None for any other answer."""
        if self.status < 400 or self.media_type != "application/problem+json":
            return None
        kind = self.document.get("type")
        is_own = isinstance(kind, str) and kind.startswith(PROBLEM_PREFIX)
        return printable(str(kind)[len(PROBLEM_PREFIX) :]) if is_own else None

    def __repr__(self) -> str:
        return f"Answer({self.status})"  # without the body, which may have a report's id or a token


def exchange(request: urllib.request.Request, most: int = MOST_BYTES, seconds: float = 0.0) -> Answer:
    """Return the answer to a request, whatever its status. Raises TransferError with a one-line message.

    After `seconds` (DEADLINE_SECONDS if 0) nothing more is sent, however slowly the server goes on. It may be
    silent as long (TIMEOUT_SECONDS if 0).
    """
    cutoff = Cutoff()
    results: list[Answer | Exception] = []

    def run() -> None:
        try:
            results.append(_answer(request, most, seconds or TIMEOUT_SECONDS, cutoff))
        except Exception as error:
            results.append(error)

    # In its own thread: a name lookup cannot be interrupted in any other way.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds or DEADLINE_SECONDS)
    if thread.is_alive():
        cutoff.cut()
        raise TransferError(
            f"no whole answer in {seconds or DEADLINE_SECONDS:g} s", code="device.no_whole_answer"
        )
    result = results[0]
    if isinstance(result, Answer):
        return result
    if isinstance(result, (OSError, HTTPException)):
        reason = getattr(result, "reason", None) or result
        raise TransferError(printable(reason, MOST_CHARACTERS), code="server.exchange_failed") from None
    if isinstance(result, ValueError):
        # Omit the error's text: it repeats header values.
        raise TransferError(
            "the request's address or headers cannot be sent", code="device.cannot_be_sent"
        ) from None
    raise result


class Cutoff:
    """Closes a connection permanently from another thread, even a connection that is made later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._is_cut = False

    def hold(self, connected: socket.socket) -> None:
        """Register a connection before anything is sent. Raises OSError if the deadline has passed."""
        with self._lock:
            self._socket = connected
            if self._is_cut:
                raise OSError("the deadline has passed")

    def cut(self) -> None:
        """Shut the connection down: a waiting reader sees its end, or an OSError."""
        with self._lock:
            self._is_cut = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(SHUT_RDWR)


def opener_for(url: str, cutoff: Cutoff) -> urllib.request.OpenerDirector:
    """Return an opener that uses the environment's proxy, but no proxy for this machine.

    It follows no redirect.
    """
    proxy = urllib.request.ProxyHandler({} if is_here(url) else None)
    return urllib.request.build_opener(proxy, _Handler(cutoff), _NoRedirects())


def backoff(attempt: int) -> float:
    """Return the seconds to wait before this attempt, counted from 1: full-jitter exponential backoff."""
    return CHANCE.uniform(0, min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0**attempt))


def _answer(request: urllib.request.Request, most: int, silence: float, cutoff: Cutoff) -> Answer:
    """Return the answer to a request."""
    try:
        response: Any = opener_for(request.full_url, cutoff).open(request, timeout=silence)
    except urllib.error.HTTPError as error:
        response = error
    with response:
        body: bytes = response.read(most + 1)
        # http.client reports this only if it reads the whole body at once.
        if len(body) <= most and getattr(response, "length", None):
            raise TransferError("the answer was cut off", code="device.cut_off")
        return Answer(response.getcode(), response.headers, body)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


class _Connection(HTTPConnection):
    """Registers its socket with a cutoff before anything is sent."""

    def __init__(self, *arguments: Any, cutoff: Cutoff, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._cutoff = cutoff

    def connect(self) -> None:
        super().connect()
        self._cutoff.hold(self.sock)


class _SecureConnection(_Connection, HTTPSConnection):
    """The same by TLS."""


class _Handler(urllib.request.HTTPSHandler, urllib.request.HTTPHandler):
    def __init__(self, cutoff: Cutoff) -> None:
        super().__init__()
        self._cutoff = cutoff

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(_Connection, req, cutoff=self._cutoff)  # type: ignore[arg-type]

    def https_open(self, req: urllib.request.Request) -> Any:
        # A default that an app has patched, to accept any certificate, must not hold for reports.
        context = ssl.create_default_context()
        return self.do_open(_SecureConnection, req, cutoff=self._cutoff, context=context)  # type: ignore[arg-type]
