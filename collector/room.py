"""Bounding what the threads of a process hold at once: bytes that are parsed, connections, streams."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Condition


class Room:
    """So much of something for all threads together.

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
