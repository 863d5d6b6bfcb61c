"""Requests to a collector or a node with an operator's key: refusals, retries, deadlines.

They use the device's HTTP module: it verifies TLS certificates, and follows no redirect.
"""

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from email.message import Message
from http.client import HTTPException
from typing import Any, TypeVar
from urllib.parse import quote

from collector.settings import TOKEN_VARIABLE, refuse_unknown_variables
from ldp_client.device.arguments import checked_url
from ldp_client.device.http import MOST_CHARACTERS, Answer, Cutoff, backoff, exchange, opener_for
from ldp_client.documents.errors import EXIT_REFUSED, TransferError, UsageError
from ldp_client.words.text import visible

T = TypeVar("T")
JSON = "application/json"
ATTEMPTS = 5
SECONDS = 60.0
# How long a stream may be silent.
SILENCE_SECONDS = 60.0
MOST_BYTES = 16 << 20
MAX_PROBLEM_BYTES = 1 << 16
# Statuses after which another attempt may succeed.
TEMPORARY = (408, 425, 429, 500, 502, 503, 504, 507)
UNKNOWN, TOO_LARGE = 404, 413
# Types of problems that mean: the server has no such address, whatever study it is about.
UNROUTED = (None, "urn:ldpkit:problem:not-found", "urn:ldpkit:problem:method-not-allowed")


class PassingError(TransferError):
    """A failure that may be over at the next attempt."""

    code = "server.unavailable"


class RefusalError(TransferError):
    """A refusal by a server; another attempt would fail too. status: its HTTP status."""

    code = "server.refused"
    exit_code = EXIT_REFUSED

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


def pause(failed: int, error: PassingError) -> None:
    """Wait after so many attempts that failed one after the other. Raises the error of the last attempt."""
    if failed == ATTEMPTS:
        raise error
    time.sleep(backoff(failed))


class Client:
    """The client of one server.

    Args:
        url: the server's address, to which paths are joined.
        token: the operator's key, "" for none.
        who: names the server in errors.

    Raises:
        UsageError: the address is wrong, the key would go there unencrypted, or it is no single key.
    """

    def __init__(self, url: str, token: str = "", who: str = "the collector") -> None:
        address, _, _ = checked_url(url)
        if not token.isascii() or not token.isprintable() or " " in token:
            raise UsageError("the key must be one word of printable ASCII", code="keys.token_not_ascii")
        self.url = address
        self.token = token
        self.who = who

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        again: bool = True,
        most: int = MOST_BYTES,
        seconds: float = SECONDS,
    ) -> Answer:
        """Return the answer to a request.

        Args:
            method: the request's method.
            path: joined to the server's address.
            body: a JSON text to send.
            again: whether to retry, because a repeated request does no harm.
            most: the most bytes of the answer.
            seconds: the deadline of all attempts together.

        Raises:
            RefusalError: the server refuses.
            PassingError: the server cannot be reached, or is out of order.
            TransferError: the answer is too long or too late.
        """
        end, failed = time.monotonic() + seconds, 0
        request = self._request(method, path, body)
        while True:
            left = end - time.monotonic()
            if left <= 0:
                raise TransferError(
                    f"{self.who}, {self.url}, gave no whole answer in {seconds:g} s",
                    code="server.no_whole_answer",
                )
            try:
                answer = exchange(request, max(most, MAX_PROBLEM_BYTES), left)
            except TransferError as cause:
                error: TransferError = PassingError(f"cannot reach {self.who}, {self.url}: {cause}")
            else:
                if 200 <= answer.status < 300:
                    break
                error = self._refusal(answer.status, answer.body)
            if not again or not isinstance(error, PassingError):
                raise error
            failed += 1
            pause(failed, error)
        if len(answer.body) > most:
            raise TransferError(f"{self.who} sent more than {most} bytes", code="server.answer_too_long")
        return answer

    def ask(
        self,
        method: str,
        path: str,
        read: Callable[[Any], T],
        document: Any = None,
        **limits: Any,
    ) -> T:
        """Return what `read` makes of a JSON answer. `read` may raise LookupError, TypeError or ValueError.

        Args:
            method: as in `send`.
            path: as in `send`.
            read: reads the answer's document.
            document: what to send, as JSON.
            **limits: `again`, `most` and `seconds`, as in `send`.

        Raises:
            TransferError: as `send`, or the answer is not a collector's.
        """
        body = None if document is None else json.dumps(document).encode()
        answer = self.send(method, path, body, **limits)
        try:
            return read(json.loads(answer.body))
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise TransferError(
                f"what came from {self.url} is no answer of a collector: is that one?",
                code="server.answer_not_json",
            ) from None

    def lines(self, path: str, most: int, note: Callable[[Message], None]) -> Iterator[bytes]:
        """Yield the lines of an answer of any length.

        Args:
            path: as in `send`.
            most: the most bytes of a line.
            note: gets the headers first.

        Raises:
            RefusalError: the server refuses.
            PassingError: the connection broke, or nothing came for SILENCE_SECONDS.
            TransferError: a line is too long.
        """
        try:
            with opener_for(self.url, Cutoff()).open(
                self._request("GET", path), timeout=SILENCE_SECONDS
            ) as response:
                note(response.headers)
                while line := response.readline(most + 1):
                    if len(line) > most:
                        raise TransferError(
                            f"{self.who} sent a line of more than {most} bytes", code="server.line_too_long"
                        )
                    yield line
        except urllib.error.HTTPError as error:
            with error:
                raise self._refusal(error.code, error.read(MAX_PROBLEM_BYTES)) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or repr(error)
            raise PassingError(f"cannot reach {self.who}, {self.url}: {_shown(reason)}") from None

    def _request(self, method: str, path: str, body: bytes | None = None) -> urllib.request.Request:
        request = urllib.request.Request(self.url + path, body, method=method)
        if self.token:
            request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        if body is not None:
            request.add_header("Content-Type", JSON)
        return request

    def _refusal(self, status: int, body: bytes) -> TransferError:
        """Return the error of a failed request, with the reason that the problem document names."""
        try:
            problem = json.loads(body)
            kind, detail, field = (problem.get(name) for name in ("type", "detail", "field"))
        except (ValueError, AttributeError, RecursionError):
            kind = detail = field = None
        if field and detail:
            detail = f"{field}: {detail}"
        if status in (UNKNOWN, 405) and kind in UNROUTED:
            detail = "no such address there: is the URL the collector's, without /s/ID? Nodes have no exports"
        elif status == TOO_LARGE and detail is None:
            detail = "a proxy in front of it takes no body of this size (nginx: client_max_body_size)"
        reason = _shown(detail or "no reason that a collector or node would give")
        message = f"{self.who} answered {status}: {reason}"
        return PassingError(message) if status in TEMPORARY else RefusalError(message, status)


def study_path(study_id: str) -> str:
    """Return the path of a study's document."""
    return f"/v1/studies/{quote(study_id, safe='')}"


def _shown(words: object) -> str:
    """Return a server's words, cut. Letters of any script stay, because folders may be named with them."""
    return visible(str(words)[:MOST_CHARACTERS])


def client_of(url: str, command: str) -> Client:
    """Return the client of a collector, with the key in LDPKIT_TOKEN.

    Args:
        url: the collector's address.
        command: the command that needs a key; "" if it can do without.

    Raises:
        UsageError: there is no key, or as `Client`.
    """
    refuse_unknown_variables()
    token = os.environ.get(TOKEN_VARIABLE, "")
    if command and not token:
        raise UsageError(f"{command} needs an operator's key in {TOKEN_VARIABLE}", code="keys.token_missing")
    return Client(url, token)
