"""Gives tests seeded system bytes, and fails fast tests that depend on more than their code.

What a test reads from the system's generator in its own process follows from the test's name: a check of a
statistic passes always or never. Tests marked `entropy` read the true generator.

A fast test fails if it listens on a port or starts a process, or its own code sleeps or reads the clock: give
the code a clock, wait for an event, take a server from a fixture, or mark the test `slow`. Tests marked
`processes` may start some. The guard watches a test, not its fixtures.
"""

import itertools
import os
import platform
import random
import sys
import threading
import time
from hashlib import shake_256
from pathlib import Path

import pytest

SLEEPS, CLOCK, STARTS = "sleeps", "reads the clock", "starts a process"
EVENTS = {
    "socket.bind": "listens on a port",
    "subprocess.Popen": STARTS,
    "os.fork": STARTS,
    "os.posix_spawn": STARTS,
}
TESTS = str(Path(__file__).parents[1])


class Guard:
    """What the running test did that it should not; the plugin of each process that runs tests."""

    def __init__(self):
        self._watches, self._item, self._kinds = False, "", set[str]()
        self._others = set[int]()
        # Libraries ask for it, and the first question starts `uname`.
        platform.processor()
        sys.addaudithook(self._hear)
        self._true_bytes, self._seeded = os.urandom, False
        self._reads = itertools.count()
        os.urandom = random._urandom = self._system_bytes
        os.register_at_fork(after_in_child=self._stop_seeding)  # else children would draw the same bytes
        time.sleep = self._telling(time.sleep, SLEEPS)
        for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter"):
            setattr(time, name, self._telling(getattr(time, name), CLOCK))

    def _system_bytes(self, size, /):
        """Return bytes that follow from the running test's name, or the true generator's."""
        if not self._seeded:
            return self._true_bytes(size)
        return shake_256(f"{next(self._reads)} {self._item}".encode()).digest(size)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        """Seed what a test and its fixtures read."""
        self._item, self._reads = item.nodeid, itertools.count()
        self._seeded = item.get_closest_marker("entropy") is None
        yield
        self._stop_seeding()

    def _stop_seeding(self):
        self._seeded = False

    def _hear(self, event, _arguments):
        if self._watches and event in EVENTS:
            self._kinds.add(EVENTS[event])

    def _telling(self, function, kind):
        """The function, which notes that a test's own code called it."""

        def told(*arguments):
            is_own = sys._getframe(1).f_code.co_filename.startswith(TESTS)
            if self._watches and is_own and threading.get_ident() not in self._others:
                self._kinds.add(kind)
            return function(*arguments)

        return told

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        """Watch one test, and let it fail if it does what no fast test may."""
        if item.get_closest_marker("slow"):
            return (yield)
        # Servers of fixtures live longer than a test.
        self._others = {thread.ident or 0 for thread in threading.enumerate()} - {threading.get_ident()}
        self._kinds, self._watches = set(), True
        try:
            result = yield
        finally:
            self._watches = False
        if item.get_closest_marker("processes"):
            self._kinds.discard(STARTS)
        if self._kinds:
            pytest.fail(f"a fast test {' and '.join(sorted(self._kinds))}", pytrace=False)
        return result
