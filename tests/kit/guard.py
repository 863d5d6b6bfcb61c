"""Gives tests seeded system bytes, and finds fast tests that depend on more than their code.

What a test reads from the system's generator in its own process follows from the test's name: a check of a
statistic passes always or never. Tests marked `entropy` read the true generator.

A fast test fails if it listens on a port, or its own code sleeps or reads the clock: give the code a clock,
wait for an event, take a server from a fixture, or mark the test `slow`. Fast tests that start processes,
wait in the product or compile many programs are only reported: a line for each kind at the end of the run,
and all of them in `guard.txt` of pytest's cache folder. The guard watches a test, not its fixtures. Tests
marked `slow` are free to do all this, and those marked `programs` may compile more.
"""

from __future__ import annotations

import itertools
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from hashlib import shake_256
from pathlib import Path
from typing import Any

import pytest

MOST_PROGRAMS = 3
EVENTS = {
    "subprocess.Popen": "starts a process",
    "os.fork": "starts a process",
    "os.posix_spawn": "starts a process",
    "socket.bind": "listens on a port",
}
SLEEPS, CLOCK, PROGRAMS = "sleeps", "reads the clock", "compiles more than 3 programs"
# Such as for a database that is locked: only a busy machine may bring it about.
WAITS = "waits in the product"
FORBIDDEN = {SLEEPS, CLOCK, "listens on a port"}
COMPILED = "/jax/core/compile/backend_compile_duration"
TESTS = str(Path(__file__).parents[1])
KEY = "guard"


class Guard:
    """What the running test did that it should not; the plugin of each process that runs tests."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._test, self._item, self._kinds, self._programs, self._hears_jax = "", "", set[str](), 0, False
        self._others = set[int]()
        sys.addaudithook(self._hear)
        self._true_bytes, self._seeded = os.urandom, False
        self._reads = itertools.count()
        os.urandom = random._urandom = self._system_bytes  # type: ignore[attr-defined,assignment]
        os.register_at_fork(after_in_child=self._stop_seeding)  # else children would draw the same bytes
        time.sleep = self._telling(time.sleep, SLEEPS, WAITS)
        for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter"):
            setattr(time, name, self._telling(getattr(time, name), CLOCK))

    def _system_bytes(self, size: int, /) -> bytes:
        """Return bytes that follow from the running test's name, or the true generator's."""
        if not self._seeded:
            return self._true_bytes(size)
        return shake_256(f"{next(self._reads)} {self._item}".encode()).digest(size)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Seed what a test and its fixtures read."""
        self._item, self._reads = item.nodeid, itertools.count()
        self._seeded = item.get_closest_marker("entropy") is None
        yield
        self._stop_seeding()

    def _stop_seeding(self) -> None:
        self._seeded = False

    def _hear(self, event: str, _arguments: tuple[object, ...]) -> None:
        if self._test and event in EVENTS:
            self._kinds.add(EVENTS[event])

    def _telling(self, function: Callable[..., Any], own: str, elsewhere: str = "") -> Callable[..., Any]:
        """The function, which notes that it was called: by a test's own code, or elsewhere."""

        def told(*arguments: Any) -> Any:
            kind = own if sys._getframe(1).f_code.co_filename.startswith(TESTS) else elsewhere
            if self._test and kind and threading.get_ident() not in self._others:
                self._kinds.add(kind)
            return function(*arguments)

        return told

    def _count_programs(self, name: str, _seconds: float, **_more: object) -> None:
        self._programs += name == COMPILED

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, object, object]:
        """Watch one test, and let it fail if it does what no fast test may."""
        if item.get_closest_marker("slow"):
            return (yield)
        if not self._hears_jax and "jax" in sys.modules:
            sys.modules["jax"].monitoring.register_event_duration_secs_listener(self._count_programs)
            self._hears_jax = True
        # Servers of fixtures live longer than a test.
        self._others = {thread.ident or 0 for thread in threading.enumerate()} - {threading.get_ident()}
        self._kinds, self._programs, self._test = set(), 0, item.nodeid
        try:
            result = yield
        finally:
            self._test = ""
            if self._programs > MOST_PROGRAMS and not item.get_closest_marker("programs"):
                self._kinds.add(PROGRAMS)
            self.found += [(kind, item.nodeid) for kind in sorted(self._kinds)]
        if self._kinds & FORBIDDEN:
            pytest.fail(f"a fast test {' and '.join(sorted(self._kinds & FORBIDDEN))}", pytrace=False)
        return result

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand over what a worker of xdist found."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[KEY] = self.found

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take it from a worker that ended."""
        self.found += [tuple(pair) for pair in getattr(node, "workeroutput", {}).get(KEY, [])]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Count, and write the list."""
        cache = getattr(terminalreporter.config, "cache", None)
        if not self.found or cache is None:
            return
        path = Path(cache.mkdir(KEY)) / "guard.txt"
        path.write_text("".join(f"{kind}: {test}\n" for kind, test in sorted(self.found)), encoding="utf-8")
        counts = Counter(kind for kind, _test in self.found)
        line = ", ".join(f"{kind}: {count}" for kind, count in counts.most_common())
        terminalreporter.write_line(f"guard, fast tests that do more than compute ({path}): {line}")
