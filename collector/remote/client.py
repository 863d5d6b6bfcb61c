"""Requests to another server with an operator's key: refusals, retries and deadlines.

An answer that is read whole has one deadline, which includes retries and waits. A stream has an allowance
that grows with the bytes received: a stream may have any size, but must bring SLOWEST_BYTES a second in the
long run.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.client import HTTPException
from threading import Timer
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

from collector.settings import PRINTABLE
from ldp_client.device.arguments import LOOPBACK
from ldp_client.device.http import MOST_CHARACTERS, Answer, Cutoff, backoff, exchange, opener_for
from ldp_client.documents.errors import EXIT_REFUSED, TransferError, UsageError
from ldp_client.documents.fields import printable
from ldp_client.words.text import visible

T = TypeVar("T")
ATTEMPTS = 5
MAX_PROBLEM_BYTES = 1 << 16
TOO_LARGE = 413
NO_SUCH_ADDRESS = (404, 405)
# Types of problems that mean: the server has no such address, whatever study it is about.
UNROUTED = (None, "urn:ldpkit:problem:not-found", "urn:ldpkit:problem:method-not-allowed")
NO_ROUTE = "no such address there: is the URL the collector's own, without /s/ID? Nodes have no exports"
TEMPORARY = (408, 425, 429, 500, 502, 503, 504, 507)
MOST_WAITING_SECONDS = 120.0
SILENCE_SECONDS = 60.0
SLOWEST_BYTES = 1024
STEP_BYTES = 1 << 16


class PassingError(TransferError):
    """A failure that may be over at the next attempt. status: the HTTP status; None if no answer arrived."""

    code = "server.unavailable"

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def ask(
    url: str,
    token: str,
    who: str,
    most: int,
    seconds: float,
    body: bytes | None = None,
    media_type: str = "",
    method: str | None = None,
    again: bool = True,
) -> Answer:
    """Return the answer to a request.

    Args:
        url: the address.
        token: the key to send, "" for none.
        who: names the server in errors.
        most: the most bytes of its answer.
        seconds: the deadline for all attempts together.
        body: what to send; with it the request is a POST, else a GET.
        media_type: the body's type.
        method: another method.
        again: whether to retry, because a repeated request does no harm.

    Raises:
        RefusalError: the server refuses.
        TransferError: the answer is too long, or ATTEMPTS attempts failed.
        InputError: the key would be sent unencrypted.
    """
    end = time.monotonic() + seconds
    request = _request(url, token, body, media_type)
    request.method = method or request.get_method()

    def once() -> Answer:
        left = end - time.monotonic()
        if left <= 0:
            raise TransferError(
                f"{who}, {url}, gave no whole answer in {seconds:g} s", code="server.no_whole_answer"
            )
        try:
            answer = exchange(request, max(most, MAX_PROBLEM_BYTES), left, left)
        except TransferError as error:
            raise PassingError(f"cannot reach {who}, {url}: {error}") from None
        if not 200 <= answer.status < 300:
            raise _refusal(answer.status, answer.body, who)
        if len(answer.body) > most:
            raise TransferError(f"{who} sent more than {most} bytes", code="server.answer_too_long")
        return answer

    return patiently(once) if again else once()


class RefusalError(TransferError):
    """A refusal by a server; another attempt would fail too. status: its HTTP status."""

    code = "server.refused"
    exit_code = EXIT_REFUSED

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Allowance:
    """The time left to wait for a stream's server, over all connections; time spent on our side is free.

    Each SLOWEST_BYTES received add a second, up to MOST_WAITING_SECONDS.
    """

    def __init__(self) -> None:
        self._seconds = MOST_WAITING_SECONDS

    @contextmanager
    def waiting(self, who: str, cutoff: Cutoff) -> Iterator[None]:
        """Wait for the server in the block, and cut its connection when the time is over.

        Raises TransferError then.
        """
        start = time.monotonic()
        timer = Timer(max(0.0, self._seconds), cutoff.cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            self._seconds -= time.monotonic() - start
            if self._seconds <= 0:
                raise TransferError(f"{who} sends too slowly, or nothing", code="server.too_slow") from None

    def earn(self, size: int) -> None:
        """Count bytes that have arrived."""
        self._seconds = min(MOST_WAITING_SECONDS, self._seconds + size / SLOWEST_BYTES)


@contextmanager
def stream(
    url: str, token: str, who: str, allowance: Allowance, note: Callable[[Message], None] = lambda _: None
) -> Iterator[Iterator[bytes]]:
    """Open a GET and yield its answer in pieces while the block lasts. note: gets the headers first.

    Raises TransferError if the server refuses or is too slow, PassingError, also in the block, if another
    attempt may succeed, and InputError if the key would be sent unencrypted.
    """
    cutoff = Cutoff()
    try:
        with allowance.waiting(who, cutoff):
            opener = opener_for(url, cutoff)
            response = opener.open(_request(url, token), timeout=min(SILENCE_SECONDS, MOST_WAITING_SECONDS))
        with response:
            note(response.headers)
            yield _pieces(response, who, cutoff, allowance)
    except urllib.error.HTTPError as error:
        with error, allowance.waiting(who, cutoff):
            said = error.read(MAX_PROBLEM_BYTES)
        raise _refusal(error.code, said, who) from None
    except (OSError, HTTPException) as error:
        reason = _shown(getattr(error, "reason", None) or repr(error))
        raise PassingError(f"cannot reach {who}, {url}: {reason}") from None


def _pieces(response: Any, who: str, cutoff: Cutoff, allowance: Allowance) -> Iterator[bytes]:
    while True:
        with allowance.waiting(who, cutoff):
            piece: bytes = response.read1(STEP_BYTES)
        if not piece:
            return
        allowance.earn(len(piece))
        yield piece


class Patience:
    """Counts failed attempts: at most ATTEMPTS, with a longer wait before each, until new data arrives."""

    def __init__(self) -> None:
        self._failed = 0

    def renew(self) -> None:
        """Start to count again, because new data arrived."""
        self._failed = 0

    def wait(self, trouble: PassingError) -> None:
        """Wait before the next attempt. Raises the trouble if no attempt is left."""
        self._failed += 1
        if self._failed == ATTEMPTS:
            raise trouble
        time.sleep(backoff(self._failed))


def patiently(ask: Callable[[], T]) -> T:
    """Call a function and return its result; retry while it raises PassingError, ATTEMPTS times at most."""
    patience = Patience()
    while True:
        try:
            return ask()
        except PassingError as error:
            patience.wait(error)


def require_private(url: str) -> None:
    """Raise InputError if a key must not go to this URL: it is neither https nor on this machine."""
    parts = _parts(url)
    if parts is None or parts.scheme not in ("http", "https") or "@" in parts.netloc or "\\" in parts.netloc:
        raise UsageError(f"{url!r} is not an http or https URL", code="server.wrong_url")
    if parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise UsageError(
            f"{url}: the key would go there in clear; use https:// (http is for this machine only)",
            code="server.key_in_clear",
        )


def require_address(url: str) -> None:
    """Raise InputError if this is no collector's address that paths can be joined to."""
    parts = _parts(url)
    fits = parts and parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
    if not fits or not PRINTABLE.difference("?#\\").issuperset(url):
        raise UsageError(
            f"'{printable(url)}' is no collector's address, as https://host is", code="server.wrong_address"
        )


def _parts(url: str) -> SplitResult | None:
    """Split a URL; return None if it is no URL."""
    try:
        parts = urlsplit(url)
        # Reading the port checks it.
        _ = parts.port
    except ValueError:
        return None
    return parts


def require_one_key(token: str) -> None:
    """Raise InputError if this is no single key: a list of several nodes' keys must go to no node."""
    if len(token.split()) > 1:
        raise UsageError(
            "the token has a blank in it: only `ldpkit node close` takes several keys, and this server "
            "is to see its own alone",
            code="keys.token_with_blank",
        )
    if not PRINTABLE.issuperset(token):
        raise UsageError("the token must be printable ASCII without spaces", code="keys.token_not_ascii")


def _request(url: str, token: str, body: bytes | None = None, media_type: str = "") -> urllib.request.Request:
    require_private(url)
    require_one_key(token)
    request = urllib.request.Request(url, body)
    # The library does not copy this header to a redirect's target, so the key goes nowhere else.
    if token:
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    if body is not None:
        request.add_header("Content-Type", media_type)
    return request


def _refusal(status: int, body: bytes, who: str) -> TransferError:
    """Return the error for a failed request, with the reason that the problem document names."""
    detail = _problem_detail(body) or "no reason that a collector or node would give"
    if status in NO_SUCH_ADDRESS and _problem_type(body) in UNROUTED:
        detail = NO_ROUTE
    if status == TOO_LARGE and _problem_detail(body) is None:
        detail = "a proxy in front of it takes no body of this size (nginx: client_max_body_size)"
    message = f"{who} answered {status}: {_shown(detail)}"
    return (PassingError if status in TEMPORARY else RefusalError)(message, status)


def _shown(said: object) -> str:
    """Return a server's words, cut. Letters of any script stay, because folders may be named with them."""
    return visible(str(said)[:MOST_CHARACTERS])


def _problem_detail(body: bytes) -> str | None:
    """Return the detail of a problem document, and the field if the document names one."""
    detail, field = _problem_member(body, "detail"), _problem_member(body, "field")
    return f"{field}: {detail}" if field and detail else detail


def _problem_type(body: bytes) -> str | None:
    return _problem_member(body, "type")


def _problem_member(body: bytes, name: str) -> str | None:
    try:
        document: Mapping[str, Any] = json.loads(body)
        member = document[name]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return member if isinstance(member, str) else None
