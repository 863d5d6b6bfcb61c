"""Lists fast tests that depend on more than their code, such as sleeps, processes, ports and the clock.

Such a test is slow, or fails now and then. For now the guard only reports: a line for each kind at the end of
the run, and all of them in `guard.txt` of pytest's cache folder. It watches a test, not its fixtures. Tests
marked `slow` are free to do all this, tests marked `entropy` may draw from the system's generator, and those
marked `programs` may compile more.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
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
SLEEPS, CLOCK, BYTES, PROGRAMS = (
    "sleeps",
    "reads the clock",
    "draws unseeded bytes",
    "compiles more than 3 programs",
)
COMPILED = "/jax/core/compile/backend_compile_duration"
TESTS = str(Path(__file__).parents[1])
KEY = "guard"


class Guard:
    """What the running test did that it should not; the plugin of each process that runs tests."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._test, self._kinds, self._programs, self._hears_jax = "", set[str](), 0, False
        sys.addaudithook(self._hear)
        os.urandom = random._urandom = self._telling(os.urandom, BYTES, everywhere=True)  # type: ignore[attr-defined]
        time.sleep = self._telling(time.sleep, SLEEPS, everywhere=True)
        for name in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter"):
            setattr(time, name, self._telling(getattr(time, name), CLOCK))

    def _hear(self, event: str, _arguments: tuple[object, ...]) -> None:
        if self._test and event in EVENTS:
            self._kinds.add(EVENTS[event])

    def _telling(
        self, function: Callable[..., Any], kind: str, everywhere: bool = False
    ) -> Callable[..., Any]:
        """The function, which notes that it was called: by a test's own code, or everywhere."""

        def told(*arguments: Any) -> Any:
            if self._test and (everywhere or sys._getframe(1).f_code.co_filename.startswith(TESTS)):
                self._kinds.add(kind)
            return function(*arguments)

        return told

    def _count_programs(self, name: str, _seconds: float, **_more: object) -> None:
        self._programs += name == COMPILED

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Watch one test."""
        if item.get_closest_marker("slow"):
            yield
            return
        if not self._hears_jax and "jax" in sys.modules:
            sys.modules["jax"].monitoring.register_event_duration_secs_listener(self._count_programs)
            self._hears_jax = True
        self._kinds, self._programs, self._test = set(), 0, item.nodeid
        yield
        self._test = ""
        if self._programs > MOST_PROGRAMS and not item.get_closest_marker("programs"):
            self._kinds.add(PROGRAMS)
        if item.get_closest_marker("entropy"):
            self._kinds.discard(BYTES)
        self.found += [(kind, item.nodeid) for kind in sorted(self._kinds)]

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
