"""The buckets of a dataset, one after the other or in several processes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from datetime import date
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import TYPE_CHECKING

from collector.exports.parts import UndoneError

if TYPE_CHECKING:
    from collector.exports.dataset import Done, Order, Plan

# To start a process takes as long as writing so many reports.
REPORTS_PER_PROCESS = 500_000
# Of an order, how many buckets, through which day, and which bucket.
Work = Callable[["Order", int, "date | None", int], "Done"]


def each_bucket(
    order: Order, plan: Plan, work: Work, between: Callable[[], None] = lambda: None
) -> Iterator[Done]:
    """What a function gives for each bucket, as it is done. Raises UndoneError.

    between: is called before the next turn of buckets.
    """
    buckets = plan.scope.buckets
    processes = min(order.processes or _processes(plan.total), buckets)
    place = (order, buckets, plan.scope.through)
    turns = turns_of(plan.former, buckets)
    if processes == 1:
        for turn in turns:
            yield from (work(*place, bucket) for bucket in turn)
            between()
        return
    context = get_context("spawn")
    with ProcessPoolExecutor(processes, context, initializer=_begin_worker) as pool:
        try:
            for turn in turns:
                waiting = [pool.submit(work, *place, bucket) for bucket in turn]
                for done in as_completed(waiting):
                    yield done.result()
                between()
        except BrokenProcessPool:
            raise UndoneError(
                "a process that made the dataset's files was killed: take fewer of them (--processes 1), or "
                "a machine with more memory; the same call goes on with what is there"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def turns_of(former: int, buckets: int) -> list[range]:
    """The buckets in turns, of which one ends before the next begins, so that no id is in no file meanwhile.

    With more buckets than before the ids of bucket k go to buckets from 2k on, with fewer to k / 2 and below:
    those are to be there when k's file is replaced. former: how many buckets the files have that are there.
    """
    if former == buckets:
        return [range(buckets)]
    ends = [1 << power for power in range(buckets.bit_length())]
    turns = [range(0, 1), *(range(end, 2 * end) for end in ends[:-1])]
    return turns if former > buckets else turns[::-1]


def _processes(total: int) -> int:
    """As many as there are processors and as pay."""
    # Not every system says which of them are this process's.
    ours = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(ours, total // REPORTS_PER_PROCESS))


def _begin_worker() -> None:
    """Ctrl-C is for the process that waits for this one; and without it there is nothing to work for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None

    def leave() -> None:
        wait([parent.sentinel])
        os._exit(1)

    Thread(target=leave, daemon=True).start()
