"""Sending one queued report, and what the answer means."""

import random
import time
import urllib.error
import urllib.request
from http.client import HTTPException

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

TIMEOUT_SECONDS = 10.0
FIRST_DELAY_SECONDS = 0.5
LONGEST_DELAY_SECONDS = 60.0
# Client errors that time can heal: request timeout, too early, too many requests.
TEMPORARY = (408, 425, 429)


class Outcome:
    """What became of one upload: "sent", "refused" (for good, with the reason) or "waiting"."""

    def __init__(self, state: str, reason: str = "") -> None:
        self.state = state
        self.reason = reason


def put_report(url: str, body: str) -> Outcome:
    """Send a report once."""
    request = urllib.request.Request(url, body.encode("utf-8"), method="PUT")
    request.add_header("Content-Type", "application/json")
    request.add_header("User-Agent", "ldpkit")
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
            return Outcome("sent")
    except urllib.error.HTTPError as error:
        with error:
            final = 400 <= error.code < 500 and error.code not in TEMPORARY
        return Outcome("refused" if final else "waiting", f"HTTP status {error.code}")
    except (OSError, HTTPException) as error:
        return Outcome("waiting", f"cannot reach the collector: {getattr(error, 'reason', error)}")


def put_with_retries(
    url: str, body: str, attempts: int, sleep: "Callable[[float], None]" = time.sleep
) -> Outcome:
    """Send a report, trying up to `attempts` times with full-jitter exponential backoff."""
    outcome = Outcome("waiting")
    for attempt in range(attempts):
        if attempt:
            longest = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0**attempt)
            sleep(random.uniform(0, longest))
        outcome = put_report(url, body)
        if outcome.state != "waiting":
            break
    return outcome
