"""`summarize_dataset`: a study's Parquet files, read by processes of this machine.

Files are divided into tasks of several files. If equal ids are in files of one part, and a part fits in
memory, each task reduces its parts. Otherwise tasks first split the reports by their ids into temporary
files, and further tasks reduce these.
"""

import ctypes
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from functools import cache, partial
from multiprocessing import get_context
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, SummaryError, UsageError
from schemas import Study
from summaries.engines.dataset import Dataset, ReportFile, find_dataset
from summaries.engines.packing import Packer
from summaries.engines.stores import line_of
from summaries.findings import Findings
from summaries.reducing import study_of
from summaries.reductions import REDUCTIONS
from summaries.rows import ROW_BITS, Reducer, RowLayout, Rows, once, parts_of
from summaries.summary import NEEDS_REPORTS, Summary

# Rows of a part, in bytes; while they are counted and reduced a worker holds about five times as much.
PART = 1 << 25
# Rows that are split by their ids at once, in bytes.
SPLIT = 1 << 26
# By how many bits of their ids reports are split at most.
MOST_BITS = 12
# Tasks for each worker: a slow task then delays the work only a little.
TASKS = 4
# This many rows are read before other processes have started.
FEW = 1 << 19
# From malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# The most freed memory that is kept, and the largest allocation without its own mmap (glibc's maximum).
KEPT, LARGEST = 1 << 26, 1 << 25


def summarize_dataset(
    study: Study | str | PathLike[str],
    addresses: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    workers: int | None = None,
    told: Callable[[int, int], None] = lambda _count, _total: None,
) -> Summary:
    """Reduce the reports in a dataset, or in Parquet files, to the summary that `summarize` makes of them.

    Each report counts once, however often it occurs in the files. The result is the same to the last bit for
    any number of workers; each worker needs less than 1 GB.

    Args:
        study: the document that the reports answer, or the path of its file.
        addresses: a dataset's root, or its folder of this study, on a disk or anywhere that fsspec reaches;
            or Parquet files, whose names may have the wildcards * and ?.
        workers: how many processes; by default one for each core, or this one if reports are few.
        told: is called now and then with how many rows were read, and the total.

    Returns:
        The summary. Reports on other versions are left out; that, and repeated reports, are noted on standard
        error.

    Raises:
        InputError: a file is damaged; reports cannot belong to the study (it counts them and shows the first
            few); there are none; a dataset's folder has files of reports that its manifest does not list; or
            a process was killed.
        UsageError: workers are fewer than one.
        SummaryError: the study needs its reports themselves.
        TransferError: a store cannot be reached.
    """
    study = study_of(study)
    refuse_kept_reports(study)
    if workers is not None and workers < 1:
        raise UsageError("workers must be 1 or more", code="engine.too_few_workers")
    dataset = find_dataset(study, addresses)
    workers = workers or (1 if dataset.rows < FEW else os.cpu_count() or 1)
    whole = Findings(study)
    whole.versions.update(dataset.left_out)
    for findings in _found_in(study, dataset, workers):
        whole.merge(findings)
        told(whole.read, max(whole.read, dataset.rows))
    return summary_of(study, whole)


def refuse_kept_reports(study: Study) -> None:
    """Raise SummaryError if a posterior needs the reports themselves, which no summary has."""
    for name, mechanism in mechanisms_of(study).items():
        if REDUCTIONS[mechanism.name].keeps_reports(mechanism):
            raise SummaryError(f"questions.{name}", NEEDS_REPORTS, code="summary.needs_reports")


def summary_of(study: Study, whole: Findings) -> Summary:
    """Return the summary in the findings of all workers together.

    Raises InputError if reports cannot belong to the study, or there are none.
    """
    whole.refuse_bad()
    if whole.summary is None or not whole.good:
        raise InputError(
            f"there are no reports on version {study.version} of {study.id}", code="reports.none_of_version"
        )
    whole.print_notes(whole.versions)
    return whole.summary


class Worker:
    """One worker's reading, counting and reducing.

    Args:
        document: the study's text.
        files: all files that are read, by any worker; none for frames.

    Attributes:
        found: what it finds.
    """

    def __init__(self, document: str, files: Sequence[ReportFile] = ()) -> None:
        keep_memory()
        study = Study.from_json(document)
        self.found = Findings(study)
        self.width = RowLayout(study).width
        self._files = files
        self._packer, self._reducer = Packer(study, self.found), Reducer(study)

    def pack(self, number: int, batches: Iterable[pa.RecordBatch]) -> Iterator[Rows]:
        """Yield the good reports of a file or a partition. number: its place among all."""
        place = number << ROW_BITS
        for batch in batches:
            yield self._packer.pack(batch, place, self._name(number))
            place += batch.num_rows

    def split(self, rows: Iterable[Rows], bits: int) -> Iterator[tuple[int, Rows]]:
        """Split rows by the first bits of their ids, many at once: (part's number, rows), in any order."""
        waiting: list[Rows] = []
        for some in rows:
            waiting.append(some)
            if sum(one.nbytes for one in waiting) >= SPLIT:
                yield from parts_of(np.concatenate(waiting), bits)
                waiting = []
        if waiting:
            yield from parts_of(np.concatenate(waiting), bits)

    def reduce(self, parts: Sequence[Rows]) -> None:
        """Count each id once, and reduce: parts are all rows of some ids."""
        if not parts:
            return
        rows, repeated, clashes = once(np.concatenate(parts))
        self.found.good += len(rows)
        self.found.repeated += repeated
        for place, report_id in clashes:
            number, row = place >> ROW_BITS, (place & (1 << ROW_BITS) - 1) + 1
            why = f"report: id: {report_id} stands twice with different content"
            self.found.refuse(f"{self._name(number)}, row {row}: {why}", place)
        self._reducer.add(rows)

    def finish(self) -> Findings:
        """Return all findings, with the summary of the reduced reports."""
        self.found.summary = self._reducer.summary()
        return self.found

    def _name(self, number: int) -> str:
        return self._files[number].name if self._files else f"partition {number}"


def _found_in(study: Study, dataset: Dataset, workers: int) -> Iterator[Findings]:
    """Yield the findings of each task as it ends."""
    document, files, width = study.to_json(), dataset.files, RowLayout(study).width
    # 1. In one step, if equal ids are in files of one part, and each part fits in memory.
    parts: defaultdict[int | None, list[ReportFile]] = defaultdict(list)
    for file in files:
        parts[file.bucket].append(file)
    largest = max(sum(file.reports for file in part) for part in parts.values()) * width
    if None not in parts and largest <= 2 * PART:
        yield from _done(partial(_reduce_files, document, files), list(parts.values()), workers)
        return
    # 2. Otherwise in two steps, through temporary files.
    bits = min(MOST_BITS, (dataset.rows * width // PART).bit_length())
    with TemporaryDirectory(prefix="ldpkit-") as folder:
        yield from _done(partial(_split_files, document, files, bits, folder), files, workers)
        split = sorted(os.listdir(folder))
        yield from _done(partial(_reduce_split, document, files, folder), split, workers)


def _reduce_files(
    document: str, files: Sequence[ReportFile], parts: Sequence[Sequence[ReportFile]]
) -> Findings:
    """Reduce parts, each of all files that may have the same ids."""
    worker = Worker(document, files)
    for part in parts:
        worker.reduce([rows for file in part for rows in worker.pack(file.number, file.batches())])
    return worker.finish()


def _split_files(
    document: str, files: Sequence[ReportFile], bits: int, folder: str, some: Sequence[ReportFile]
) -> Findings:
    """Write the rows of some files into a folder for each part, in a file of this task."""
    worker = Worker(document, files)
    rows = (rows for file in some for rows in worker.pack(file.number, file.batches()))
    for part, content in worker.split(rows, bits):
        path = Path(folder, str(part), str(some[0].number))
        try:
            path.parent.mkdir(exist_ok=True)
            with open(path, "ab") as file:
                file.write(content.tobytes())
        except OSError as error:
            # The system's error names no file if the disk is full.
            raise InputError(
                f"cannot keep temporary files in {Path(folder).parent}: {line_of(error)}; "
                "set TMPDIR to a folder with more room",
                code="engine.no_room",
            ) from None
    return worker.found


def _reduce_split(document: str, files: Sequence[ReportFile], folder: str, parts: Sequence[str]) -> Findings:
    """Reduce parts that `_split_files` wrote."""
    worker = Worker(document, files)
    for part in parts:
        paths = sorted(Path(folder, part).iterdir())
        worker.reduce([np.fromfile(path, np.uint8).reshape(-1, worker.width) for path in paths])
    return worker.finish()


def _done(
    task: Callable[[Sequence[Any]], Findings], items: Sequence[Any], workers: int
) -> Iterator[Findings]:
    """Do groups of items, TASKS for each worker. Raises InputError if a process was killed."""
    count = min(workers * TASKS, len(items))
    groups = [items[first::count] for first in range(count)]
    if workers == 1:
        yield from map(task, groups)
        return
    # Spawned, not forked: a fork of a process with threads may wait forever. One thread each.
    with ProcessPoolExecutor(min(workers, count), get_context("spawn"), pa.set_cpu_count, (1,)) as pool:
        try:
            for future in as_completed([pool.submit(task, group) for group in groups]):
                yield future.result()
        except BrokenProcessPool:
            raise InputError(
                "a process that read reports was killed: take fewer (summarize_dataset(…, workers=1)), or "
                "a machine with more memory",
                code="engine.processes_killed",
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@cache
def keep_memory() -> None:
    """Have this process keep up to 64 MiB that it freed, which it needs again at once.

    glibc returns freed memory to the system, in pieces as small as 128 KiB if MALLOC_TRIM_THRESHOLD_ is set,
    as Dask sets it for its workers. Each batch of reports then requests the same pages again, and the system
    fills them with zeros: a third of all the CPU that a report costs. Other C libraries are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, KEPT)
        mallopt(M_MMAP_THRESHOLD, LARGEST)
