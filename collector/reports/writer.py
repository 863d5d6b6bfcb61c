"""The only writing thread of a process: it takes all waiting work, commits it at once, then answers.

A commit costs a flush of the disk, whatever its size. While a commit runs, uploads gather, and the next
commit takes them all. No upload waits for others to arrive.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from collector.errors import is_of_all
from collector.limiter import log_throttled
from collector.problems import DISK_FULL, OVERLOADED, UNAVAILABLE, ProblemError
from collector.store import PackedReport

# Most reports in one commit: a second's work with millions of reports stored.
MOST_AT_ONCE = 10_000
T = TypeVar("T")
Action = Callable[[Session], Any]


@dataclass(frozen=True)
class Upload:
    """Checked reports for one study. ticket: what a single report spends, as `checked` returns it."""

    study: str
    reports: Sequence[PackedReport]
    ticket: bytes | None = None


@dataclass(frozen=True)
class Change:
    """A small change, written in one transaction with others, so that many changes share a disk flush.

    make: returns the result for the waiting thread, or raises an error for that thread alone. key: the study
    and the report. Changes are made in the order of their keys, which prevents deadlocks between processes.
    """

    key: tuple[str, bytes]
    make: Action


Work = Upload | Change


class _Job:
    """Something to write, and the thread that waits for the result.

    study: "" for what operators do. size: in reports.
    """

    def __init__(self, work: Work | Action, study: str, size: int = 1) -> None:
        self.work = work
        self.study = study
        self.size = size
        self._result: Any = None
        # A bare lock: an Event costs as much as the rest of a request's wait.
        self._pending = Lock()
        self._pending.acquire()

    def resolve(self, result: Any) -> None:
        """Wake the thread with a value, or with an error to raise."""
        self._result = result
        self._pending.release()

    def wait(self, seconds: float) -> bool:
        """Wait for the value. Return True if it came in time."""
        return self._pending.acquire(timeout=seconds)

    def result(self) -> Any:
        """Return the value, or raise the error, once it is there."""
        if isinstance(self._result, BaseException):
            raise self._result
        return self._result


class Writer:
    """Writes for every thread of a process.

    store: commits uploads and changes in one transaction, and returns one result or exception for each.
    act: runs a function of a session in its own transaction. capacity: how many reports of one study
    may wait; other studies' reports, and operators' work, have other room.
    observe: gets the seconds of each commit, and how many reports wait after it. patience: most seconds for a
    commit; while a commit takes longer, requests fail at once, so that threads are left for requests that
    need no database.
    """

    def __init__(
        self,
        store: Callable[[Sequence[Work]], Sequence[Any]],
        act: Callable[[Action], Any],
        capacity: int,
        observe: Callable[[float, int], None],
        patience: float,
    ) -> None:
        self._store = store
        self._act = act
        self._capacity = capacity
        self._observe = observe
        self._patience = patience
        self._since: float | None = None
        # Whether the last commit failed for a reason that every other commit has too.
        self.is_failing = False
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._lock = Lock()
        self._waiting: Counter[str] = Counter()
        self._thread: Thread | None = None

    @property
    def depth(self) -> int:
        """Return how many reports wait or are being written now."""
        return self._waiting.total()

    def upload(self, upload: Upload) -> Any:
        """Return the result of `store` for an upload, durable on return.

        Raises ProblemError when too much work waits, and the errors of the database.
        """
        return self._run_job(_Job(upload, upload.study, len(upload.reports)))

    def change(self, key: tuple[str, bytes], action: Callable[[Session], T]) -> T:
        """Return the value of `action`, in a transaction that it shares with others: see Change."""
        value: T = self._run_job(_Job(Change(key, action), key[0]))
        return value

    def act(self, action: Callable[[Session], T]) -> T:
        """Return a function's value, durable on return. Raises the function's errors."""
        value: T = self._run_job(_Job(action, ""))
        return value

    def close(self) -> None:
        """Finish the waiting work and end the thread. Write nothing afterwards."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def require_moving(self) -> None:
        """Raise ProblemError while one commit exceeds the patience."""
        since = self._since
        if since is not None and time.monotonic() - since > self._patience:
            line = "a commit of the database takes longer than requests wait"
            log_throttled(logging.WARNING, line)
            raise ProblemError(UNAVAILABLE, "the database takes too long; the request may still take effect")

    def _run_job(self, job: _Job) -> Any:
        self.require_moving()
        with self._lock:
            waiting = self._waiting[job.study]
            if waiting and waiting + job.size > self._capacity:
                raise ProblemError(OVERLOADED, "too many reports wait to be written; nothing was stored")
            self._waiting[job.study] = waiting + job.size
            if self._thread is None:
                # Start it here: a thread does not survive the fork that starts a worker.
                self._thread = Thread(target=self._run, name="writer", daemon=True)
                self._thread.start()
        self._queue.put(job)
        while not job.wait(self._time_left()):
            self.require_moving()
        return job.result()

    def _time_left(self) -> float:
        """Return the seconds until the current commit has taken too long."""
        since = self._since
        return self._patience if since is None else max(0.01, since + self._patience - time.monotonic())

    def _run(self) -> None:
        while jobs := self._take():
            for is_shared, group in groupby(jobs, lambda job: isinstance(job.work, (Upload, Change))):
                if is_shared:
                    self._commit(list(group), self._store)
                else:
                    for job in group:
                        self._commit([job], lambda works: [self._act(works[0])])

    def _take(self) -> list[_Job]:
        """Return the waiting jobs up to MOST_AT_ONCE, at least one. Return none once the writer is closed."""
        jobs, size = [], 0
        job = self._queue.get()
        while job is not None:
            jobs.append(job)
            size += job.size
            if size >= MOST_AT_ONCE:
                return jobs
            try:
                job = self._queue.get_nowait()
            except Empty:
                return jobs
        if jobs:
            self._queue.put(None)
        return jobs

    def _commit(self, jobs: Sequence[_Job], write: Callable[[Sequence[Any]], Sequence[Any]]) -> None:
        start = self._since = time.monotonic()
        results: list[tuple[_Job, Any]]
        try:
            results = list(zip(jobs, write([job.work for job in jobs]), strict=True))
        except BaseException as error:
            results = [(job, error) for job in jobs]
        self._since = None
        self.is_failing = any(_is_of_all(result) for _, result in results)
        with self._lock:
            for job in jobs:
                self._waiting[job.study] -= job.size
            # Keep no study that has nothing waiting.
            self._waiting = +self._waiting
        try:
            self._observe(time.monotonic() - start, self.depth)
        except Exception as error:
            # The thread must live: without it every upload would wait forever.
            log_throttled(logging.ERROR, "a commit could not be counted", error)
        for job, result in results:
            job.resolve(result)


def _is_of_all(result: object) -> bool:
    """Return True for an error that every other write would have too."""
    if isinstance(result, ProblemError):
        return result.kind in (DISK_FULL, UNAVAILABLE)
    return isinstance(result, Exception) and is_of_all(result)
