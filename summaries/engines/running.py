"""`summarize_dataset` and `count_dataset`: a study's Parquet files, read by processes of this machine.

Files are divided into tasks of several files or buckets. Reports that are not in a dataset's parts go through
temporary files first.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from functools import partial
from multiprocessing import get_context
from os import PathLike

import pyarrow as pa
from pyarrow.parquet import read_metadata

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, UsageError
from schemas import Study
from summaries.engines.addresses import opened
from summaries.engines.counting import Counting, ReportCounts
from summaries.engines.dataset import Dataset, ReportFile, find_dataset
from summaries.engines.parts import Part, merged, refuse_kept_reports
from summaries.engines.rows import RowLayout
from summaries.engines.spilling import spill, spilled, spilled_rows, spilling_folder
from summaries.engines.work import BUCKET, Ending, Job, split_files, summarize_buckets
from summaries.extras import naming_extra
from summaries.reducing import study_of
from summaries.refusing import left_out_notes
from summaries.summary import Summary

Addresses = str | PathLike[str] | Sequence[str | PathLike[str]]
# Called with how many rows were read so far, and the total.
Told = Callable[[int, int], None]


def _to_nobody(_count: int, _total: int) -> None:
    """Ignore progress."""


def summarize_dataset(
    study: Study | str | PathLike[str],
    addresses: Addresses,
    *,
    workers: int | None = None,
    check: bool = True,
    told: Told = _to_nobody,
) -> Summary:
    """Reduce the reports in a dataset, or in Parquet files, to the summary that `summarize` makes of them.

    Each report counts once, however often it occurs in the files. The result is the same to the last bit for
    any number of workers; each worker needs less than 1 GB.

    Args:
        study: the document that the reports answer, or the path of its file.
        addresses: a dataset's root, or its folder of this study, on a disk or anywhere that fsspec reaches;
            or Parquet files, whose names may have the wildcards * and ?.
        workers: how many processes; by default one for each core.
        check: compare the files' bytes with the SHA-256 that the manifest states.
        told: is called now and then with how many rows were read, and the total.

    Returns:
        The summary. Reports on other versions are left out; that, and repeated reports, are noted on standard
        error.

    Raises:
        InputError: files are damaged (the message names them); reports cannot belong to the study (it counts
            them and shows the first few); there are none; or a dataset's folder has files of reports that its
            manifest does not list.
        UsageError: workers are fewer than one.
        SummaryError: the study needs its reports themselves.
        TransferError: a store cannot be reached.
        MissingExtraError: pyarrow is not installed.
    """
    study = study_of(study)
    refuse_kept_reports(mechanisms_of(study))
    with naming_extra():
        whole, _ = _run(study, addresses, workers, check, None, told)
    assert whole.summary is not None
    return whole.summary


def count_dataset(
    study: Study | str | PathLike[str],
    addresses: Addresses,
    names: Sequence[str],
    *,
    workers: int | None = None,
    check: bool = True,
    told: Told = _to_nobody,
) -> ReportCounts:
    """Count equal reports to some questions, by public fields: all that `analyse` needs for these.

    Args:
        study: the document that the reports answer, or the path of its file.
        addresses: as in `summarize_dataset`, which also documents the exceptions not listed here.
        names: ids of the questions (choices with few different reports), and of the public fields.
        workers: how many processes.
        check: whether files are compared with the manifest.
        told: is called with the progress.

    Returns:
        The counts, which `analyse` takes instead of reports.

    Raises:
        InputError: as `summarize_dataset` raises it; or there are more than a million different reports.
        UsageError: a name is none of the study's.
        MissingExtraError: pyarrow is not installed.
    """
    study = study_of(study)
    known = [*mechanisms_of(study), *(field.id for field in study.public)]
    for name in names:
        if name not in known:
            raise UsageError(
                f"study {study.id} has no question or public field {name}: it has {', '.join(known)}",
                code="engine.unknown_column",
            )
    asked = tuple(names)
    with naming_extra():
        whole, notes = _run(study, addresses, workers, check, asked, told)
    counting = Counting(study, asked)
    return ReportCounts(study, asked, {counting.key(key): n for key, n in whole.counts.items()}, notes)


def _run(
    study: Study,
    addresses: Addresses,
    workers: int | None,
    check: bool,
    asked: tuple[str, ...] | None,
    told: Told,
) -> tuple[Part, tuple[str, ...]]:
    """Return the findings of all workers together, and notes on them."""
    if workers is not None and workers < 1:
        raise UsageError("workers must be 1 or more", code="engine.too_few_workers")
    dataset = counted(find_dataset(study, addresses))
    job = Job(study.to_json(), tuple(file.name for file in dataset.files), check, asked)
    total = rows_of(dataset)
    parts = run_local(job, dataset, workers, lambda count: told(count, max(count, total)))
    with closing(parts):
        whole = merged(study, parts, dataset.left_out)
    return whole, left_out_notes(whole.others.versions)


# Tasks for each worker: a killed or slow task then delays the work only a little.
TASKS = 4
MOST_BITS = 12


def bits_for(job: Job, dataset: Dataset) -> int:
    """Return by how many bits of their ids reports are split, so that each part fits in memory."""
    size = rows_of(dataset) * RowLayout(job.study).width
    return min(MOST_BITS, max(0, size // BUCKET).bit_length())


def counted(dataset: Dataset) -> Dataset:
    """Return the dataset with each file's number of rows, from the file if no manifest states it.

    Raises TransferError if a store cannot be reached.
    """
    return dataset._replace(files=[_counted(file) for file in dataset.files])


def _counted(file: ReportFile) -> ReportFile:
    """Return the file with its number of rows; unchanged if that fails, as reading it reports the error."""
    if file.reports is not None:
        return file
    try:
        with opened(file.path) as source:
            return file._replace(reports=int(read_metadata(source).num_rows))
    except (pa.ArrowException, OSError):
        return file


def rows_of(dataset: Dataset) -> int:
    """Return how many rows all files have, as far as that is known."""
    return sum(file.reports or 0 for file in dataset.files)


def groups_of(dataset: Dataset, most: int) -> list[list[ReportFile]]:
    """Divide files into at most so many groups; files of one bucket of a dataset stay together."""
    buckets: dict[int, list[ReportFile]] = defaultdict(list)
    for file in dataset.files:
        buckets[file.number if file.bucket is None else file.bucket].append(file)
    parts = [buckets[bucket] for bucket in sorted(buckets)]
    many = min(most, len(parts))
    return [[file for part in parts[at::many] for file in part] for at in range(many)]


# This many rows are read before other processes have started.
FEW = 1 << 19
Work = Callable[[], Part]


def run_local(
    job: Job, dataset: Dataset, workers: int | None, told: Callable[[int], None]
) -> Generator[Part, None, None]:
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


def _done(tasks: Sequence[Work], workers: int, told: Callable[[int], None]) -> Iterator[Part]:
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
