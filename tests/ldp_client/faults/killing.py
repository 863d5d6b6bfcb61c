"""Ending a device's life at a chosen moment.

Kinds: random (SIGKILL at a moment drawn evenly from a life), statement (before an SQL statement), write or
power (before a write, flush, removal or renaming of a file; power loses what was not flushed).
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.kit.failing_disk import FailingDisk
from tests.ldp_client.faults.checking import problems_after_fault, problems_at_end
from tests.ldp_client.faults.collector import collector
from tests.ldp_client.faults.life import live

FINISHED, KILLED = 0, 9
SEED = 20260615
# Where flushing costs nothing: a killed process does not lose what it wrote to a file.
MEMORY = "/dev/shm"
MODULE = "tests.ldp_client.faults.killing"


def at_statement(point: int) -> None:
    seen = [0]

    def count_down(_statement: str) -> None:
        seen[0] += 1
        if seen[0] == point:
            os._exit(KILLED)

    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(count_down)
        return connection

    sqlite3.connect = traced  # type: ignore[assignment]


def at_write(point: int) -> None:
    """For a process that runs under tests/kit/disk.c."""
    os.environ["FAILING_DISK_DIES_AT"] = str(point)


KINDS = {"statement": at_statement, "write": at_write, "power": at_write}


def break_flushing() -> None:
    class Careless(sqlite3.Connection):
        def execute(self, statement: str, *values: Any) -> sqlite3.Cursor:
            return super().execute(statement.replace("EXTRA", "OFF"), *values)

    sqlite3.connect = partial(sqlite3.connect, factory=Careless)


def in_child(work: Callable[[], None], wait: float | None = None) -> int:
    """Run in a forked process, killed after `wait` seconds; its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = FINISHED
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if wait is not None:
        time.sleep(wait)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Faults:
    """Lives of fresh devices, each cut short once and then lived again to its end.

    root: where the devices are. durable: what a loss of power leaves of them, where power is lost.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._root = Path(os.environ.get("FAILING_DISK_ROOT", folder))
        self._durable = os.environ.get("FAILING_DISK_DURABLE")
        self._codes: dict[int, int] = {}
        self.problems: list[str] = []

    @property
    def cut(self) -> int:
        """How many lives were cut short."""
        return sum(code != FINISHED for code in self._codes.values())

    def at(self, point: int, prepare: Callable[[int], None]) -> bool:
        """Cut a life short at that point: whether it has so many."""
        if point not in self._codes:
            self._cut(point, lambda: prepare(point), None)
        return self._codes[point] == KILLED

    def after(self, number: int, seconds: float) -> None:
        """Kill a life after so many seconds."""
        self._cut(number, lambda: None, seconds)

    def _cut(self, number: int, prepare: Callable[[], None], wait: float | None) -> None:
        place, log = self._root / f"device-{number}", self._folder / f"{number}.log"
        log.touch()
        if self._durable:
            (Path(self._durable) / place.name).mkdir()
        with collector(log) as url:

            def cut_short() -> None:
                prepare()
                live(str(place), url)

            self._codes[number] = in_child(cut_short, wait)
            if self._durable:
                shutil.rmtree(place, ignore_errors=True)
                shutil.copytree(Path(self._durable) / place.name, place)
            self._check(number, lambda: problems_after_fault(str(place), log))
            if in_child(lambda: live(str(place), url)) != FINISHED:
                self.problems.append(f"{number}: the next life failed")
            self._check(number, lambda: problems_at_end(str(place), log))

    def _check(self, number: int, check: Callable[[], list[str]]) -> None:
        """In a child: whoever reads a ledger may have to repair it."""
        notes = self._folder / "problems"
        notes.write_text('["the check failed"]')
        in_child(lambda: [notes.write_text(json.dumps(check()))].clear())
        self.problems += [f"{number}: {problem}" for problem in json.loads(notes.read_text())]


def run(kind: str, count: int, folder: Path) -> Faults:
    """Faults of one kind: at `count` points or a few more."""
    faults = Faults(folder)
    if kind == "random":
        chance, longest = random.Random(SEED), _duration(folder)
        for number in range(4 * count):
            if faults.cut < count:
                faults.after(number, chance.uniform(0, longest))
        return faults
    last = _last_point(faults, KINDS[kind])
    for point in range(1, last + 1, max(1, last // count)):
        faults.at(point, KINDS[kind])
    return faults


def _duration(folder: Path) -> float:
    """How long a life takes, in seconds; the first of two is slower."""
    log = folder / "duration.log"
    with collector(log) as url:
        for name in ("first", "second"):
            start = time.monotonic()
            in_child(partial(live, str(folder / name), url))
    return time.monotonic() - start


def _last_point(faults: Faults, prepare: Callable[[int], None]) -> int:
    """The last point of a life, found by doubling and halving."""
    high = 1
    while faults.at(high, prepare):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if faults.at(middle, prepare) else (low, middle)
    return low


def start(kind: str, count: int, broken: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the faults in a process of their own: it forks, and may need another disk.

    broken: with a ledger that flushes nothing, to see the problems found.
    """
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as folder:
        environment = dict(os.environ)
        if kind in ("write", "power"):
            environment |= FailingDisk(Path(folder), loses_power=kind == "power").environment
        command = [sys.executable, "-m", MODULE, kind, str(count), folder, *["broken"][: int(broken)]]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def main() -> int:
    """Print how many lives were cut short and what was wrong then; 1 if anything was."""
    kind, count, folder, *broken = sys.argv[1:]
    if broken:
        break_flushing()
    faults = run(kind, int(count), Path(folder))
    print(f"{kind}: {faults.cut} lives cut short, {len(faults.problems)} problems")
    print("\n".join(faults.problems))
    return 1 if faults.problems else 0


if __name__ == "__main__":
    sys.exit(main())
