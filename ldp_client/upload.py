"""Requests to a collector, and what their answers mean.

TLS certificates are verified. A redirect is followed within the same host and port only, and never
from https to http.
"""

import random
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from urllib.parse import urlsplit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.client import HTTPMessage
    from typing import IO, Callable, Optional

TIMEOUT_SECONDS = 10.0
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 60.0
# Client errors that time can heal: request timeout, too early, too many requests.
TEMPORARY = (408, 425, 429)
# Redirects that keep the method and the body.
KEEPING = (307, 308)


class Outcome:
    """What became of one request: "sent", "refused" (for good, with the reason) or "waiting"."""

    def __init__(self, state: str, reason: str = "") -> None:
        self.state = state
        self.reason = reason


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a redirect where it leads to the same place, and gives up (returns None) elsewhere."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: "IO[bytes]",
        code: int,
        msg: str,  # noqa: ARG002
        headers: "HTTPMessage",  # noqa: ARG002
        newurl: str,
    ) -> "Optional[urllib.request.Request]":
        if not _stays(req.full_url, newurl) or not (code in KEEPING or req.get_method() == "GET"):
            return None
        # urllib would read all of the answer, however long it is.
        fp.close()
        moved = urllib.request.Request(newurl, req.data, method=req.get_method())
        moved.headers.update(req.headers)
        return moved


def _stays(old: str, new: str) -> bool:
    before, after = urlsplit(old), urlsplit(new)
    kept = ("https",) if before.scheme == "https" else ("http", "https")
    return after.netloc.lower() == before.netloc.lower() and after.scheme in kept


def open_url(request: urllib.request.Request) -> "IO[bytes]":
    """The response to a request. Raises OSError (HTTPError for a bad status), ValueError or HTTPException."""
    opened: "IO[bytes]" = urllib.request.build_opener(_Redirects).open(request, timeout=TIMEOUT_SECONDS)
    return opened


def put_report(url: str, body: str, invitation: str = "") -> Outcome:
    """Send a report once. invitation: for a study that takes invited reports only.

    A report whose invitation is not taken waits for another.
    """
    return _put(url, body.encode("utf-8"), "application/json", invitation)


def put_share(url: str, share: bytes, invitation: str = "") -> Outcome:
    """Send a sealed share once, as `put_report` does a report."""
    return _put(url, share, "application/octet-stream", invitation)


def _put(url: str, body: bytes, media_type: str, invitation: str) -> Outcome:
    headers = {"Content-Type": media_type}
    if invitation:
        headers["LDPKit-Invitation"] = invitation
    outcome = _ask(urllib.request.Request(url, body, headers, method="PUT"))
    if outcome.reason == "HTTP status 403":
        return Outcome("waiting", "the study takes invited reports only: give an invitation that is unused")
    return outcome


def delete_report(url: str, secret: str) -> Outcome:
    """Ask once for a report's deletion: "sent" when the collector does not have it any more.

    secret: what the report's id was made of, in hexadecimal digits; it stands in no address.
    """
    headers = {"LDPKit-Withdrawal": secret}
    outcome = _ask(urllib.request.Request(url, headers=headers, method="DELETE"))
    gone = outcome.reason in ("HTTP status 404", "HTTP status 410")
    return Outcome("sent") if gone else outcome


def _ask(request: urllib.request.Request) -> Outcome:
    request.add_header("User-Agent", "ldpkit")
    try:
        with open_url(request):
            return Outcome("sent")
    except urllib.error.HTTPError as error:
        with error:
            final = 400 <= error.code < 500 and error.code not in TEMPORARY
        return Outcome("refused" if final else "waiting", f"HTTP status {error.code}")
    except (OSError, ValueError, HTTPException) as error:
        return Outcome("waiting", f"cannot reach the collector: {getattr(error, 'reason', error)}")


def with_retries(
    ask: "Callable[[], Outcome]", attempts: int, sleep: "Callable[[float], None]" = time.sleep
) -> Outcome:
    """Make a request, trying up to `attempts` times with full-jitter exponential backoff."""
    outcome = Outcome("waiting")
    for attempt in range(attempts):
        if attempt:
            longest = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0**attempt)
            sleep(random.uniform(0, longest))
        outcome = ask()
        if outcome.state != "waiting":
            break
    return outcome
