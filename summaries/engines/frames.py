"""`dask_summary` and `spark_summary`: reports in a frame, summarised where the frame's computations run.

A partition's good reports become rows of bytes. The engine brings rows together by the first bits of their
ids, so that each id is counted once. It moves pairs of a part's number and rows as bytes; what else a worker
finds, such as refused reports, travels as the part FINDINGS.
"""

import pickle
from collections.abc import Iterable, Iterator
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import pyarrow as pa

from ldp_client.documents.errors import InputError, MissingExtraError
from schemas import Study
from summaries.engines.dataset import BATCH
from summaries.engines.packing import COLUMNS, refuse_columns
from summaries.engines.running import Worker, refuse_kept_reports, summary_of
from summaries.findings import Findings
from summaries.reducing import study_of
from summaries.summary import Summary

FINDINGS = -1
# Ids with the same first eight bits are a part.
PART_BITS = 8
PARTS = 1 << PART_BITS
SPARK_SCHEMA = "part long, rows binary"
ARROW_SCHEMA = pa.schema([("part", pa.int64()), ("rows", pa.binary())])
# Dask would make texts of bytes.
DASK_SETTINGS = {"dataframe.convert-string": False}
Pair = tuple[int, bytes]


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
    study, columns = _checked(study, frame)
    packed = frame.select(*columns).mapInArrow(partial(_pack_on_spark, study.to_json()), SPARK_SCHEMA)
    # Rows with the same id are in one group.
    reduced = packed.groupBy("part").applyInPandas(partial(_reduce, study.to_json()), SPARK_SCHEMA)
    return _merged(study, (bytes(row["rows"]) for row in reduced.collect()))


def dask_summary(study: Study | str | PathLike[str], frame: Any) -> Summary:
    """Reduce the reports in a Dask DataFrame to the summary that `summarize` makes of them.

    Every worker needs ldpkit as this process has it.

    Args:
        study: the document that the reports answer, or the path of its file.
        frame: a dask.dataframe.DataFrame with the columns of an export: report_id, study, version, digest,
            payloads and, if the study has public fields, public.

    Returns:
        The summary, to the last bit.

    Raises:
        InputError: reports cannot belong to the study, or there are none.
        SummaryError: the study needs its reports themselves.
        MissingExtraError: Dask is not installed.
    """
    study, columns = _checked(study, frame)
    try:
        import dask
    except ModuleNotFoundError:
        raise MissingExtraError("dask", "dask") from None
    from pandas.api.types import is_object_dtype, is_string_dtype

    kind = frame.dtypes["payloads"]
    # is_string_dtype is also true for pandas's object type.
    if is_string_dtype(kind) and not is_object_dtype(kind):
        raise InputError(
            "the frame's payloads are texts, which Dask makes of pandas's objects: make the frame under "
            'dask.config.set({"dataframe.convert-string": False}), or read the files with dask.dataframe',
            code="engine.payloads_are_texts",
        )
    with dask.config.set(DASK_SETTINGS):
        packed = frame[columns].map_partitions(partial(_pack_on_dask, study.to_json()), meta=_frame_of([]))
        # Rows with the same id meet in one partition.
        together = packed.shuffle("part", npartitions=min(PARTS, packed.npartitions))
        found = together.map_partitions(partial(_reduce, study.to_json()), meta=_frame_of([])).compute()
    return _merged(study, found["rows"])


def _checked(study: Study | str | PathLike[str], frame: Any) -> tuple[Study, list[str]]:
    """Return the study, and the frame's columns to read. Raises InputError, SummaryError."""
    study = study_of(study)
    refuse_kept_reports(study)
    refuse_columns(frame.columns)
    return study, [name for name in frame.columns if name in COLUMNS]


def _merged(study: Study, contents: Iterable[bytes]) -> Summary:
    """Add up the findings of all workers. Raises InputError as `summary_of` does."""
    whole = Findings(study)
    for content in contents:
        whole.merge(pickle.loads(content))
    return summary_of(study, whole)


def _pack(document: str, number: int, batches: Iterable[pa.RecordBatch]) -> Iterator[Pair]:
    """Yield the parts of a partition's good reports, then the findings. number: the partition's."""
    worker = Worker(document)
    for part, rows in worker.split(worker.pack(number, batches), PART_BITS):
        yield part, rows.tobytes()
    yield FINDINGS, pickle.dumps(worker.found)


def _reduce(document: str, frame: Any) -> Any:
    """Count each report of whole parts once, and reduce them; earlier findings are merged."""
    worker, is_rows = Worker(document), frame["part"] != FINDINGS
    content = b"".join(frame["rows"][is_rows])
    worker.reduce([np.frombuffer(content, np.uint8).reshape(-1, worker.width)])
    for earlier in frame["rows"][~is_rows]:
        worker.found.merge(pickle.loads(earlier))
    return _frame_of([(FINDINGS, pickle.dumps(worker.finish()))])


def _pack_on_spark(document: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from pyspark import TaskContext

    context = TaskContext.get()
    for part, rows in _pack(document, context.partitionId() if context else 0, batches):
        yield pa.RecordBatch.from_pylist([{"part": part, "rows": rows}], ARROW_SCHEMA)


def _pack_on_dask(document: str, frame: Any, partition_info: Any = None) -> Any:
    number = int(partition_info["number"]) if partition_info else 0
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return _frame_of(list(_pack(document, number, table.to_batches(BATCH))))


def _frame_of(pairs: list[Pair]) -> Any:
    import pandas as pd

    parts = pd.Series([part for part, _ in pairs], dtype="int64")
    return pd.DataFrame({"part": parts, "rows": pd.Series([rows for _, rows in pairs], dtype="object")})
