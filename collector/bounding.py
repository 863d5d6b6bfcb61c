"""Bounding what a process spends: memory and threads held at once, time to compute, lines in a log."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition, Lock
from typing import Generic, TypeVar


class Room:
    """A budget of some resource that all threads share.

    refuse: makes the error for a thread that waits `patience` seconds in vain. Where nothing has been given
    back for as long, it comes at once: threads that queued before something stuck would be missing for
    everything else.
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
        """Hold so much while the block lasts; more than there is at all only with nobody beside.

        Raises where there is no room in time.
        """
        self.take(amount)
        try:
            yield
        finally:
            self.give_back(amount)

    def take(self, amount: float = 1) -> None:
        """Hold so much until it is given back. Raises where there is no room in time."""
        with self._changed:
            if not self._held:
                self._moved = time.monotonic()
            try:
                self._wait_for(amount)
                self._held += amount
            finally:
                # One wakes the next: all at once would keep those that work from working.
                self._changed.notify()

    def give_back(self, amount: float = 1) -> None:
        """Hold so much less."""
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
# Counting millions of reports takes a while; a page may take a twentieth of the time for it.
REST = 20.0


class CostBoundCache(Generic[T]):
    """Cache a value and recompute it no more often than 1/REST of the time computing takes."""

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute
        self._lock = Lock()
        self._due = 0.0
        self._value: T

    def get(self) -> T:
        """The value; waits for another thread that computes it now."""
        with self._lock:
            start = time.monotonic()
            if start >= self._due:
                self._value = self._compute()
                end = time.monotonic()
                self._due = end + REST * (end - start)
            return self._value

    def forget(self) -> None:
        """Compute it at the next call: it was changed."""
        with self._lock:
            self._due = 0.0


LOGGER = logging.getLogger("collector")
QUIET_SECONDS = 60.0
MOST_CAUSES = 5


class ThrottledLog:
    """Logs a line at once, and the same again no sooner than QUIET_SECONDS later, with how often it came.

    So an outage shows at once and fills no disk.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._seen: dict[str, tuple[float, int]] = {}

    def log(self, level: int, line: str, cause: BaseException | None = None, code: str = "other") -> None:
        """Log a line, or count it. code: what programs know it by.

        cause: its kind, and the lines of code that it came through, are logged with it, and each kind counts
        by itself. Not its message, which may quote a report or its id.
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
        way = "" if cause is None else f"\n{_way_of(cause)}"
        LOGGER.log(level, "%s%s%s", line, more, way, extra={"code": code})

    def forget(self) -> None:
        """Log everything again."""
        self._seen.clear()


def _way_of(error: BaseException) -> str:
    """Where an exception was raised, and those that it came of, without what any of them says."""
    ways: list[str] = []
    found: BaseException | None = error
    # As many as anybody reads: what an exception came of may come of itself.
    while found is not None and len(ways) < MOST_CAUSES:
        kind = f"{type(found).__module__}.{type(found).__qualname__}"
        ways.append("".join([*traceback.format_tb(found.__traceback__), kind]))
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return "\n".join(reversed(ways))


THROTTLED = ThrottledLog()
log_throttled = THROTTLED.log
