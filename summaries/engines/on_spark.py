"""`spark_summary`: the reports in a Spark DataFrame, summarised by the session's workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from os import PathLike
from typing import Any

import pyarrow as pa

from schemas import Study
from summaries.engines.frames import BUCKETS, FOUND, Pair, check_frame, pack, reduce, summary_of
from summaries.engines.packing import COLUMNS
from summaries.engines.rows import RowLayout
from summaries.reducing import study_of
from summaries.summary import Summary

SCHEMA = "bucket long, rows binary"
ARROW = pa.schema([("bucket", pa.int64()), ("rows", pa.binary())])
# Bytes of one value, of which Spark gives Python ten thousand at once; and values that Python gives at once.
VALUE, GIVEN = 1 << 12, 1 << 10
Batches = Iterator[pa.RecordBatch]


def spark_summary(study: Study | str | PathLike[str], frame: Any) -> Summary:
    """Reduce the reports in a Spark DataFrame to the summary that `summarize` makes of them.

    Every worker needs ldpkit as this process has it.

    Args:
        study: the document that the reports answer, or the path of its file.
        frame: a pyspark.sql.DataFrame with the columns of an export: report_id, study, version, digest,
            payloads and, if the study has public fields, public.

    Returns:
        The summary, to the last bit.

    Raises:
        InputError: reports cannot belong to the study, or there are none.
        SummaryError: the study needs its reports themselves.
    """
    study = study_of(study)
    check_frame(study, frame.columns)
    columns = [name for name in frame.columns if name in COLUMNS]
    shuffles = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    packed = frame.select(*columns).mapInArrow(partial(_pack, study.to_json()), SCHEMA)
    # Rows with the same id meet in one partition.
    together = packed.repartition(min(BUCKETS, shuffles), "bucket")
    found = together.mapInArrow(partial(_reduce, study.to_json()), SCHEMA).collect()
    return summary_of(study, (bytes(row["rows"]) for row in found))


def _pack(document: str, batches: Batches) -> Batches:
    from pyspark import TaskContext

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    width = RowLayout(Study.from_json(document)).width
    return _batches(_divided(pack(document, number, batches), width))


def _reduce(document: str, batches: Batches) -> Batches:
    pairs = (
        pair for one in batches for pair in zip(*(one.column(at).to_pylist() for at in (0, 1)), strict=True)
    )
    return _batches(reduce(document, pairs))


def _divided(pairs: Iterable[Pair], width: int) -> Iterator[Pair]:
    """Rows as values of few bytes each, or of one row; findings stay whole."""
    step = max(1, VALUE // width) * width
    for bucket, content in pairs:
        if bucket == FOUND:
            yield bucket, content
            continue
        for begin in range(0, len(content), step):
            yield bucket, content[begin : begin + step]


def _batches(pairs: Iterable[Pair]) -> Batches:
    pairs = iter(pairs)
    while some := list(islice(pairs, GIVEN)):
        buckets, rows = zip(*some, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(buckets, pa.int64()), pa.array(rows, pa.binary())], schema=ARROW
        )
