"""One task, timed in a process of its own: CPU microseconds for each report, as JSON on standard output."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable

# A task: makes its call, and says how many reports one call makes.
Task = Callable[[], "tuple[Callable[[], object], int]"]
SECONDS = 0.4


def microseconds(task: Task) -> float:
    """CPU time of one report: the best of five runs, each long enough to measure."""
    call, reports = task()
    call()
    calls, best = 1, float("inf")
    while _taken(call, calls) < SECONDS / 10:
        calls *= 2
    for _ in range(5):
        best = min(best, _taken(call, calls) / calls / reports)
    return best * 1e6


def _taken(call: Callable[[], object], calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        call()
    return time.process_time() - start


def main(tasks: dict[str, Task]) -> None:
    """`python FILE TASK`: a task that this interpreter cannot run is null."""
    task = tasks.get(sys.argv[1])
    try:
        print(json.dumps(None if task is None else microseconds(task)))
    except ImportError as missing:
        print(missing, file=sys.stderr)
        print("null")
