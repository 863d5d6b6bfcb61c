"""`dask_summary`: the reports in a Dask DataFrame, summarised where the frame's computations run."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any

import pandas as pd
import pyarrow as pa

from ldp_client.documents.errors import InputError, MissingExtraError
from schemas import Study
from summaries.engines.frames import BUCKETS, check_frame, pack, reduce, summary_of
from summaries.engines.packing import COLUMNS
from summaries.engines.work import BATCH
from summaries.reducing import study_of
from summaries.summary import Summary

# Dask would make texts of bytes.
SETTINGS = {"dataframe.convert-string": False}


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
    study = study_of(study)
    check_frame(study, frame.columns)
    try:
        import dask
    except ModuleNotFoundError:
        raise MissingExtraError("dask", "dask") from None
    if _is_text(frame.dtypes["payloads"]):
        raise InputError(
            "the frame's payloads are texts, which Dask makes of pandas's objects: make the frame under "
            'dask.config.set({"dataframe.convert-string": False}), or read the files with dask.dataframe',
            code="engine.payloads_are_texts",
        )
    with dask.config.set(SETTINGS):
        packed = frame.map_partitions(partial(_pack, study.to_json()), meta=_frame([]))
        # Rows with the same id meet in one partition.
        together = packed.shuffle("bucket", npartitions=min(BUCKETS, packed.npartitions))
        found = together.map_partitions(partial(_reduce, study.to_json()), meta=_frame([])).compute()
    return summary_of(study, found["rows"])


def _is_text(kind: Any) -> bool:
    # is_string_dtype is also true for pandas's object type.
    return bool(pd.api.types.is_string_dtype(kind) and not pd.api.types.is_object_dtype(kind))


def _frame(pairs: list[tuple[int, bytes]]) -> pd.DataFrame:
    buckets = pd.Series([bucket for bucket, _ in pairs], dtype="int64")
    return pd.DataFrame({"bucket": buckets, "rows": pd.Series([rows for _, rows in pairs], dtype="object")})


def _pack(document: str, frame: pd.DataFrame, partition_info: Any = None) -> pd.DataFrame:
    number = int(partition_info["number"]) if partition_info else 0
    columns = [name for name in frame.columns if name in COLUMNS]
    table = pa.Table.from_pandas(frame[columns], preserve_index=False)
    return _frame(list(pack(document, number, table.to_batches(BATCH))))


def _reduce(document: str, frame: pd.DataFrame) -> pd.DataFrame:
    return _frame(list(reduce(document, zip(frame["bucket"], frame["rows"], strict=True))))
