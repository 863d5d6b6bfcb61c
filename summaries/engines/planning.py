"""Divides work into buckets that fit in a worker's memory, and tasks of several files or buckets."""

from __future__ import annotations

from collections import defaultdict

from pyarrow import ArrowException
from pyarrow.parquet import read_metadata

from summaries.engines.addresses import opened
from summaries.engines.dataset import Dataset, ReportFile
from summaries.engines.rows import RowLayout
from summaries.engines.work import BUCKET, Job

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
    except (ArrowException, OSError):
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
