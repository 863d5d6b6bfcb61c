"""Reports in frames of Dask and Spark: rows of bytes, brought together by their ids, then each counted once.

The engine moves pairs of a bucket's number and rows as bytes. A worker's other findings, such as refused
reports, travel as the bucket FOUND.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError
from schemas import Study
from summaries.engines.packing import Packer, refuse_columns
from summaries.engines.parts import Part, merged, refuse_kept_reports
from summaries.engines.rows import ROW_BITS, RowLayout, Rows
from summaries.engines.work import Ending, Job, split_rows
from summaries.summary import Summary

FOUND = -1
# Ids with the same first eight bits are a bucket.
BUCKET_BITS = 8
BUCKETS = 1 << BUCKET_BITS
Pair = tuple[int, bytes]


def check_frame(study: Study, columns: Iterable[str]) -> None:
    """Refuse a study whose posterior needs the reports themselves, and a frame that lacks columns.

    Raises:
        SummaryError: the study needs its reports.
        InputError: a column of reports is absent.
    """
    refuse_kept_reports(mechanisms_of(study))
    refuse_columns(columns)


def pack(document: str, number: int, batches: Iterable[pa.RecordBatch]) -> Iterator[Pair]:
    """Check the reports of a partition, and pack the good ones.

    Args:
        document: the study's text.
        number: the partition's number, which errors name.
        batches: the partition's columns.

    Yields:
        A bucket's number and some of its rows; at the end FOUND and the other findings.
    """
    study = Study.from_json(document)
    found = Part.empty(study)
    packer = Packer(study, found)

    def packed() -> Iterator[Rows]:
        place = number << ROW_BITS
        for batch in batches:
            yield packer.pack(batch, place, f"partition {number}")
            place += batch.num_rows

    for bucket, rows in split_rows(packed(), BUCKET_BITS):
        yield bucket, rows.tobytes()
    yield FOUND, pickle.dumps(found)


def reduce(document: str, pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Count each report of whole buckets once, and reduce them; earlier findings pass through unchanged."""
    study = Study.from_json(document)
    found, ending, width = Part.empty(study), Ending(Job(document), study), RowLayout(study).width
    buckets: defaultdict[int, list[Rows]] = defaultdict(list)
    for bucket, content in pairs:
        if bucket == FOUND:
            yield FOUND, content
        else:
            buckets[bucket].append(np.frombuffer(content, np.uint8).reshape(-1, width))
    while buckets:
        ending.add(found, buckets.popitem()[1])
    yield FOUND, pickle.dumps(ending.finish(found))


def summary_of(study: Study, contents: Iterable[bytes]) -> Summary:
    """Add up the findings of all workers.

    Raises:
        InputError: reports cannot belong to the study, or there are none.
    """
    summary = merged(study, map(pickle.loads, contents)).summary
    if summary is None:
        raise InputError("the frame has no partition with reports", code="reports.none_of_version")
    return summary
