"""The work of a worker in any engine: reading files into rows, and reducing rows to findings."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow.parquet import ParquetFile

from ldp_client.documents.errors import InputError, TransferError
from schemas import Study
from summaries.engines.addresses import opened
from summaries.engines.counting import Counting
from summaries.engines.dataset import ReportFile, refuse_changed
from summaries.engines.packing import COLUMNS, NEEDED, Packer
from summaries.engines.parts import Part
from summaries.engines.reducer import Reducer
from summaries.engines.rows import ROW_BITS, Rows, halves_of, once, parts_of
from summaries.engines.spilling import spill, spilled, spilled_rows, spilling_folder
from summaries.tables import refuse_repeated

# Rows of a bucket, in bytes; while they are counted and reduced a worker holds about five times as much.
BUCKET = 1 << 25
# Rows of a file at once.
BATCH = 1 << 15
# Rows that are split by their ids at once, in bytes.
SPLIT = 1 << 26


class Job(NamedTuple):
    """The description of the work that all workers get.

    Attributes:
        document: the study's text.
        names: the files' names, by their numbers.
        check: whether files are compared with the manifest.
        asked: the questions and public fields by which reports are counted; None: they are summarised.
    """

    document: str
    names: tuple[str, ...] = ()
    check: bool = True
    asked: tuple[str, ...] | None = None

    @property
    def study(self) -> Study:
        """The study."""
        return Study.from_json(self.document)

    def where(self, place: int) -> str:
        """Say where a row is."""
        number, row = place >> ROW_BITS, (place & (1 << ROW_BITS) - 1) + 1
        return (
            f"{self.names[number]}, row {row}"
            if number < len(self.names)
            else f"partition {number}, row {row}"
        )


def batches_of(file: ReportFile) -> Iterator[pa.RecordBatch]:
    """Read the columns of a file that reports have. Raises InputError for a damaged one, TransferError."""
    try:
        with opened(file.path) as source:
            table = ParquetFile(source, page_checksum_verification=True)
            refuse_repeated(table.schema_arrow, file.path)
            _refuse_other_count(file, table.metadata.num_rows)
            there = [name for name in table.schema_arrow.names if name in COLUMNS]
            # Other columns are those of an export in JSON.
            whole = there if set(NEEDED) <= set(there) else None
            yield from table.iter_batches(BATCH, columns=whole, use_threads=False)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        # An OSError with a number comes from the system; errors about a file's content have texts of several
        # lines.
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(
                f"cannot read {file.path}: {error.strerror}", code="files.not_readable"
            ) from None
        raise InputError(
            f"{file.path} is damaged, or is not a Parquet file: export it again", code="files.not_parquet"
        ) from None


def _refuse_other_count(file: ReportFile, found: int) -> None:
    """Raise InputError if a file does not have as many rows as it should have."""
    if file.reports in (None, found):
        return
    if file.bucket is not None:
        raise InputError(
            f"{file.path} has {found} reports, the manifest says {file.reports}: export it again",
            code="merge.file_has_other_count",
        )
    raise InputError(
        f"{file.path} has {found} reports where a worker opened it, and {file.reports} where the work began: "
        "name files that every worker reaches and that no program writes to",
        code="merge.file_changed_meanwhile",
    )


def rows_of_file(job: Job, packer: Packer, file: ReportFile) -> Iterator[Rows]:
    """Read a file's good reports; refused reports and a damaged file go to the packer's findings."""
    place = file.number << ROW_BITS
    if packer.found.is_away:
        # Every further file of the store would take as long to time out.
        return
    try:
        if job.check:
            refuse_changed(file)
        for batch in batches_of(file):
            rows = packer.pack(batch, place, job.names[file.number])
            place += batch.num_rows
            if len(rows):
                yield rows
    except InputError as error:
        packer.found.damaged[file.number] = error.code, str(error)
    except TransferError as error:
        packer.found.damaged[file.number] = error.code, str(error)
        packer.found.is_away = True
    except OSError as error:
        why = f"cannot read {file.path}: {error.strerror or error}"
        packer.found.damaged[file.number] = "files.not_readable", why


def split_rows(rows: Iterable[Rows], bits: int) -> Iterator[tuple[int, Rows]]:
    """Split rows by the first bits of their ids, many at once: (part's number, rows), in any order."""
    waiting: list[Rows] = []
    size = 0
    for some in rows:
        waiting.append(some)
        size += some.nbytes
        if size >= SPLIT:
            yield from parts_of(np.concatenate(waiting), bits)
            waiting, size = [], 0
    if waiting:
        yield from parts_of(np.concatenate(waiting), bits)


class Ending:
    """The last step of every engine: all rows of some ids, each counted once and reduced.

    Args:
        job: the description of the work.
        study: the job's, read.
    """

    def __init__(self, job: Job, study: Study) -> None:
        self._job = job
        self._reducer = Reducer(study) if job.asked is None else Counting(study, job.asked)

    def add(self, found: Part, parts: Sequence[Rows]) -> None:
        """Count and reduce all rows of a bucket."""
        if not parts:
            return
        rows, repeated, clashes = once(np.concatenate(parts))
        found.good += len(rows)
        found.repeated += repeated
        for place, report_id in clashes:
            why = f"report: id: {report_id} stands twice with different content"
            found.bad.add(f"{self._job.where(place)}: {why}", place)
        self._reducer.add(rows)

    def finish(self, found: Part) -> Part:
        """Put the result of all added rows into the findings, and return them."""
        self._reducer.put_into(found)
        return found


def summarize_buckets(job: Job, files: Sequence[ReportFile], bits: int) -> Part:
    """Summarise all files of some buckets of a dataset, a bucket after the other.

    bits: of the ids, by how many reports are split so that each part fits in memory. A bucket that is larger
    goes through temporary files.
    """
    keep_memory()
    study = job.study
    found = Part.empty(study)
    packer, ending = Packer(study, found), Ending(job, study)
    for bucket in sorted({file.bucket for file in files if file.bucket is not None}):
        own = [file for file in files if file.bucket == bucket]
        rows = _noted(found, bucket, (rows for file in own for rows in rows_of_file(job, packer, file)))
        if sum(file.reports or 0 for file in own) * packer.layout.width <= 2 * BUCKET:
            ending.add(found, list(rows))
            continue
        with spilling_folder() as folder:
            spill(folder, "rows", split_rows(rows, bits))
            for number in spilled(folder):
                ending.add(found, spilled_rows(folder, number, packer.layout.width))
    return ending.finish(found)


def _noted(found: Part, bucket: int, batches: Iterable[Rows]) -> Iterator[Rows]:
    """Note between which ids a bucket's reports lie."""
    for rows in batches:
        ids = halves_of(rows)[0]
        found.note_span(bucket, int(ids.min()), int(ids.max()))
        yield rows


def split_files(job: Job, files: Sequence[ReportFile], bits: int, found: Part) -> Iterator[tuple[int, Rows]]:
    """Read files, and split their good reports by the first bits of their ids; the rest goes to `found`."""
    keep_memory()
    packer = Packer(job.study, found)
    return split_rows((rows for file in files for rows in rows_of_file(job, packer, file)), bits)


# From malloc.h.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
# The most freed memory that is kept, and the largest allocation without its own mmap (glibc's maximum).
KEPT = 1 << 26
LARGEST = 1 << 25


@cache
def keep_memory() -> bool:
    """Have this process keep up to 64 MiB that it freed, which it needs again at once.

    glibc returns freed memory to the system, in pieces as small as 128 KiB if MALLOC_TRIM_THRESHOLD_ is set,
    as Dask sets it for its workers. Each batch of reports then requests the same pages again, and the system
    fills them with zeros: a third of all the CPU that a report costs. Other C libraries are left as they are.

    Returns:
        Whether the C library does so.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(
        mallopt(which, size) == 1 for which, size in ((M_TRIM_THRESHOLD, KEPT), (M_MMAP_THRESHOLD, LARGEST))
    )
