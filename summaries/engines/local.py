"""The engine of one machine: processes, and temporary files where reports are not in a dataset's parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context

import pyarrow as pa

from ldp_client.documents.errors import InputError
from summaries.engines.dataset import Dataset, ReportFile
from summaries.engines.parts import Part
from summaries.engines.planning import TASKS, bits_for, groups_of, rows_of
from summaries.engines.rows import RowLayout
from summaries.engines.spilling import spill, spilled, spilled_rows, spilling_folder
from summaries.engines.work import Ending, Job, split_files, summarize_buckets

# This many rows are read before other processes have started.
FEW = 1 << 19
Work = Callable[[], Part]
Told = Callable[[int], None]


def run_local(job: Job, dataset: Dataset, workers: int | None, told: Told) -> Generator[Part, None, None]:
    """Do a job by processes of this machine.

    Args:
        job: what to do.
        dataset: the files.
        workers: how many processes; by default one for each core, or this one if reports are few.
        told: is called with how many rows were read so far.

    Returns:
        The findings, in parts that add up, as each is done.

    Raises:
        InputError: processes were killed, and killed again when their work was retried.
    """
    many = workers or (1 if rows_of(dataset) < FEW else os.cpu_count() or 1)
    groups, bits = groups_of(dataset, many * TASKS), bits_for(job, dataset)
    if dataset.is_bucketed:
        yield from _done([partial(summarize_buckets, job, files, bits) for files in groups], many, told)
        return
    with spilling_folder() as folder:
        split = [partial(_split, job, files, bits, folder, at) for at, files in enumerate(groups)]
        first = list(_done(split, many, told))
        buckets = spilled(folder)
        shares = [buckets[at :: many * TASKS] for at in range(min(many * TASKS, len(buckets)))]
        read = sum(part.read for part in first)
        tasks = [partial(_summarize_split, job, share, folder) for share in shares]
        yield from first
        yield from _done(tasks, many, lambda count: told(read + count))


def _split(job: Job, files: Sequence[ReportFile], bits: int, folder: str, task: int) -> Part:
    """Write the rows of files into a file for each bucket; a retry writes the same files again."""
    found = Part.empty(job.study)
    spill(folder, str(task), split_files(job, files, bits, found))
    return found


def _summarize_split(job: Job, buckets: Sequence[int], folder: str) -> Part:
    study = job.study
    found, ending, width = Part.empty(study), Ending(job, study), RowLayout(study).width
    for bucket in buckets:
        ending.add(found, spilled_rows(folder, bucket, width))
    return ending.finish(found)


def _done(tasks: Sequence[Work], workers: int, told: Told) -> Iterator[Part]:
    """Do tasks; those that a killed process leaves undone are done once more, by new processes."""
    left, read = dict(enumerate(tasks)), 0
    for _ in range(2):
        if not left:
            return
        try:
            for part in _one_after_the_other(left) if workers == 1 else _in_processes(left, workers):
                read += part.read
                told(read)
                yield part
        except BrokenProcessPool:
            continue
        return
    raise InputError(
        "processes that read reports were killed, twice: take fewer of them (--workers), or a machine with "
        "more memory",
        code="engine.processes_killed",
    )


def _one_after_the_other(left: dict[int, Work]) -> Iterator[Part]:
    for task in left.values():
        yield task()


def _in_processes(left: dict[int, Work], workers: int) -> Iterator[Part]:
    """Do tasks. Raises BrokenProcessPool if a process was killed; unfinished tasks stay in `left`."""
    # Spawned, not forked: a fork of a process with threads may wait forever.
    with ProcessPoolExecutor(min(workers, len(left)), get_context("spawn"), _begin) as pool:
        futures: dict[Future[Part], int] = {pool.submit(task): number for number, task in left.items()}
        try:
            for future in as_completed(futures):
                part = future.result()
                # Nothing keeps what was found but who takes it.
                del left[futures.pop(future)]
                yield part
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin() -> None:
    """One thread each: the processes are as many as there are to be."""
    pa.set_cpu_count(1)
