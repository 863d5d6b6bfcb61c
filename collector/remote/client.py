"""Asking another server with an operator's key: one request, what a refusal means, patience with troubles."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from typing import TypeVar

from ldp_client.device.exchange import MOST_CHARACTERS, opener_for
from ldp_client.documents.errors import TransferError
from ldp_client.documents.fields import printable

T = TypeVar("T")
ATTEMPTS = 5
FIRST_DELAY_SECONDS = 0.5
MAX_PROBLEM_BYTES = 1 << 16
TEMPORARY = (408, 425, 429, 500, 502, 503, 504, 507)


class PassingError(TransferError):
    """Trouble that may be over at the next attempt."""


@contextmanager
def opened(
    url: str, token: str, who: str, seconds: float, body: bytes | None = None, media_type: str = ""
) -> Iterator[HTTPResponse]:
    """Open a GET, or a POST where there is a body, and give its answer while the block lasts.

    who: names the server in errors. seconds: of each wait for it. Raises TransferError where it refuses,
    PassingError where it may work another time, also in the block.
    """
    request = urllib.request.Request(url, body)
    # Unredirected: a redirect must not carry the key elsewhere.
    request.add_unredirected_header("Authorization", f"Bearer {token}")
    if body is not None:
        request.add_header("Content-Type", media_type)
    try:
        with opener_for(url).open(request, timeout=seconds) as response:
            yield response
    except urllib.error.HTTPError as error:
        raise _refusal(error, who) from None
    except (OSError, HTTPException) as error:
        reason = printable(getattr(error, "reason", None) or repr(error), MOST_CHARACTERS)
        raise PassingError(f"cannot reach {who}, {url}: {reason}") from None


class Patience:
    """ATTEMPTS at something, each wait twice as long as the last, until one brings something new."""

    def __init__(self) -> None:
        self._failed = 0

    def renew(self) -> None:
        """Start to count again: something new came."""
        self._failed = 0

    def wait(self, trouble: PassingError) -> None:
        """Wait before the next attempt. Raises the trouble where there is none left."""
        self._failed += 1
        if self._failed == ATTEMPTS:
            raise trouble
        time.sleep(FIRST_DELAY_SECONDS * 2 ** (self._failed - 1))


def patiently(ask: Callable[[], T]) -> T:
    """What a function gives, asked again while it raises PassingError, ATTEMPTS times at most."""
    patience = Patience()
    while True:
        try:
            return ask()
        except PassingError as error:
            patience.wait(error)


def _refusal(error: urllib.error.HTTPError, who: str) -> TransferError:
    """The error to raise for an HTTP error status, with the reason that the problem document names."""
    with error:
        detail = _problem_detail(error.read(MAX_PROBLEM_BYTES))
    kind = PassingError if error.code in TEMPORARY else TransferError
    return kind(f"{who} answered {error.code}: {printable(detail or error.reason, MOST_CHARACTERS)}")


def _problem_detail(body: bytes) -> str | None:
    try:
        document = json.loads(body)
    except ValueError:
        return None
    detail = document.get("detail") if isinstance(document, dict) else None
    return detail if isinstance(detail, str) else None
