"""How work is divided: into buckets that fit in a worker's memory, and tasks of several files or buckets."""

from __future__ import annotations

from collections import defaultdict

from pyarrow import ArrowException
from pyarrow.parquet import read_metadata

from summaries.engines.dataset import Dataset, ReportFile, open_address
from summaries.engines.rows import RowLayout
from summaries.engines.work import BUCKET, Job

# Tasks for each worker: one that is killed, or slow, holds up little.
TASKS = 4
MOST_BITS = 12


def bits_for(job: Job, dataset: Dataset) -> int:
    """Say by how many bits of their ids reports are split, so that each part fits in memory."""
    size = sum(map(rows_in, dataset.files)) * RowLayout(job.study).width
    return min(MOST_BITS, max(0, size // BUCKET).bit_length())


def rows_in(file: ReportFile) -> int:
    """Count a file's rows by what it says of itself; 0 where it says nothing: reading tells what is wrong."""
    if file.reports is not None:
        return file.reports
    try:
        with open_address(file.path) as source:
            return int(read_metadata(source).num_rows)
    except (ArrowException, OSError):
        return 0


def groups_of(dataset: Dataset, most: int) -> list[list[ReportFile]]:
    """Divide files into at most so many groups; of a dataset files of one bucket stay together."""
    buckets: dict[int, list[ReportFile]] = defaultdict(list)
    for file in dataset.files:
        buckets[file.number if file.bucket is None else file.bucket].append(file)
    parts = [buckets[bucket] for bucket in sorted(buckets)]
    many = min(most, len(parts))
    return [[file for part in parts[at::many] for file in part] for at in range(many)]
