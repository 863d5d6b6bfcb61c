"""Limits on a process's memory, waiting threads, computing time, rates and log lines."""

import logging
import math
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Lock
from typing import Generic, TypeVar

from collector.problems import TOO_MANY_REPORTS, Kind, ProblemError


class Limiter:
    """A budget of some resource that all threads share.

    refuse: makes the error for a thread that has waited `patience` seconds. If nothing was given back for
    that long, the error comes at once: the resource is stuck, and threads that queue for it would be missing
    elsewhere.
    """

    def __init__(self, capacity: float, patience: float, refuse: Callable[[], Exception]) -> None:
        self._capacity = capacity
        self._patience = patience
        self._refuse = refuse
        self._changed = Condition()
        self._held = 0.0
        self._moved = 0.0

    @contextmanager
    def hold(self, amount: float = 1) -> Iterator[None]:
        """Hold this amount while the block lasts. An amount above the capacity needs the whole room.

        Raises the error of `refuse` if there is no room in time.
        """
        with self._changed:
            if not self._held:
                self._moved = time.monotonic()
            try:
                self._wait_for(amount)
                self._held += amount
            finally:
                # Each thread wakes the next. Waking all at once would delay the threads that work.
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._held -= amount
                self._moved = time.monotonic()
                self._changed.notify()

    def _wait_for(self, amount: float) -> None:
        last = time.monotonic() + self._patience
        while self._held and self._held + amount > self._capacity:
            seconds = min(last, self._moved + self._patience) - time.monotonic()
            if seconds <= 0:
                raise self._refuse()
            self._changed.wait(seconds)


T = TypeVar("T")
# Counting millions of reports takes a while; a page may spend a twentieth of the time on it.
REST = 20.0


class CostBoundCache(Generic[T]):
    """Caches a value and recomputes it so rarely that computing takes at most about 1/REST of the time."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute
        self._lock = Lock()
        self._due = 0.0
        self._value: T

    def get(self) -> T:
        """Return the value; wait if another thread computes it now."""
        with self._lock:
            start = time.monotonic()
            if start >= self._due:
                self._value = self._compute()
                end = time.monotonic()
                self._due = end + REST * (end - start)
            return self._value

    def forget(self) -> None:
        """Recompute the value at the next call, because it was changed."""
        with self._lock:
            self._due = 0.0


BURST_SECONDS = 10.0
DEBT_SECONDS = 10.0


class TokenBucket:
    """Holds up to BURST_SECONDS of `rate` tokens, and gains `rate` a second.

    Each stored report takes a token, after it is stored. Rejected reports and duplicates take no token. A
    full bucket admits a batch of any size, so that no batch is rejected forever. Its debt is at most
    DEBT_SECONDS (or one report, if that is more).
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = Lock()
        self._most = rate * BURST_SECONDS
        self._least = -max(1.0, rate * DEBT_SECONDS)
        self._tokens = self._most
        self._filled = clock()

    def let_in(self, reports: int) -> float:
        """Return 0 if so many reports may enter now, else the seconds to wait. It takes no token."""
        with self._lock:
            now = self._clock()
            self._tokens = min(self._most, self._tokens + (now - self._filled) * self._rate)
            self._filled = now
            missing = min(reports, self._most) - self._tokens
            return max(0.0, min(missing, self._most - self._least) / self._rate)

    def require(self, reports: int, kind: Kind, detail: str) -> None:
        """Raise ProblemError, with the seconds to wait, if so many reports may not enter now."""
        if seconds := self.let_in(reports):
            raise ProblemError(kind, detail, headers={"Retry-After": str(math.ceil(seconds))})

    def take(self, stored: int = 1) -> None:
        """Take a token for each stored report."""
        with self._lock:
            self._tokens = max(self._tokens - stored, self._least)


class UploadLimits:
    """The limit of one process on the reports to each study, so that a flood of one stops no other.

    rate: reports a second; 0 for no limit.
    """

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._studies: dict[str, TokenBucket] = {}

    def let_in(self, study_id: str, reports: int = 1) -> None:
        """Raise ProblemError if so many reports may not enter now."""
        bucket = self._studies.get(study_id)
        if bucket is not None:
            bucket.require(reports, TOO_MANY_REPORTS, "more reports arrived than are accepted a second")

    def take(self, study_id: str, stored: int) -> None:
        """Count the stored reports of an upload to a published study."""
        if self._rate:
            self._studies.setdefault(study_id, TokenBucket(self._rate)).take(stored)


LOGGER = logging.getLogger("collector")
QUIET_SECONDS = 60.0
MOST_CAUSES = 5


class ThrottledLog:
    """Logs a line at once, and repeats it no sooner than QUIET_SECONDS later, with the number of repetitions.

    So an outage shows at once and fills no disk.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._seen: dict[str, tuple[float, int]] = {}

    def log(self, level: int, line: str, cause: BaseException | None = None) -> None:
        """Log a line, or count it.

        The cause's kind is logged, and the lines of code that it came through. Each kind of cause is counted
        separately. The cause's message is left out, because it may quote a report or its id.
        """
        key = line if cause is None else f"{line}: {type(cause).__name__}"
        now = self._clock()
        with self._lock:
            due, left_out = self._seen.get(key, (now, 0))
            if now < due:
                self._seen[key] = due, left_out + 1
                return
            self._seen[key] = now + QUIET_SECONDS, 0
        more = f" (and {left_out} times since this was last logged)" if left_out else ""
        trace = "" if cause is None else f"\n{_traceback_of(cause)}"
        LOGGER.log(level, "%s%s%s", line, more, trace)


def _traceback_of(error: BaseException) -> str:
    """Return where an exception and its causes were raised, without their messages."""
    traces: list[str] = []
    cause: BaseException | None = error
    # Limited, because an exception can be among its own causes.
    while cause is not None and len(traces) < MOST_CAUSES:
        kind = f"{type(cause).__module__}.{type(cause).__qualname__}"
        traces.append("".join([*traceback.format_tb(cause.__traceback__), kind]))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\n".join(reversed(traces))


THROTTLED = ThrottledLog()
log_throttled = THROTTLED.log
