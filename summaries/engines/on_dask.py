"""The engine Dask: tasks on a cluster's workers, and its own shuffle where reports are in no dataset."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.metadata import version
from logging import ERROR
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, MissingExtraError
from schemas import Study
from summaries.engines.clusters import await_worker, connected, require_workers, saying_losses
from summaries.engines.dataset import Dataset, ReportFile
from summaries.engines.packing import COLUMNS, Packer, refuse_columns
from summaries.engines.parts import Part, merged, refuse_kept_reports
from summaries.engines.places import refuse_other_than_scheduler
from summaries.engines.planning import TASKS, bits_for, groups_of
from summaries.engines.rows import ROW_BITS, RowLayout, Rows
from summaries.engines.work import BATCH, Ending, Job, split_files, split_rows, summarize_buckets
from summaries.reducing import study_of
from summaries.summary import Summary
from summaries.telling import tell_waiting

# Of what a worker found, beside the buckets of rows: a bucket of its own.
FOUND = -1
# Buckets of a frame whose rows nobody counted.
FRAME_BITS = 8
# Bytes stay bytes.
SETTINGS = {"dataframe.convert-string": False}
# Of a cluster that is started here, which nobody looks into: no stacks are sampled, a hundred times a second.
OWN = {"distributed.worker.profile.enabled": False}
# Of the page on how a cluster fares: any port that is free, on this machine alone.
HERE = "127.0.0.1:0"
# What a worker must be able to load, and packages of which it must have this version.
NEEDED, SAME = f"{__name__}:FOUND", ("ldpkit",)


def run_dask(
    job: Job, dataset: Dataset, workers: int | None, cluster: str | None, told: Callable[[int], None]
) -> Iterator[Part]:
    """Have a Dask cluster do a job.

    Args:
        job: what to do.
        dataset: the files, at addresses that every worker reaches.
        workers: of a cluster that is started for this on this machine.
        cluster: the address of a scheduler instead.
        told: is told how many rows were read so far.

    Returns:
        What was found, in parts that add up.

    Raises:
        UsageError: the address has not the form of a scheduler's.
        MissingExtraError: Dask is not installed.
        TransferError: no scheduler answers, or it was lost.
        InputError: a worker has not what it needs, or workers were lost too often.
    """
    address = cluster or "Dask"
    with _client(workers, cluster) as client, saying_losses(client, address):
        if cluster is not None:
            _look_at_workers(client, cluster)
        many = max(1, len(client.nthreads())) * TASKS
        groups = groups_of(dataset, many)
        bits = bits_for(job, dataset)
        if dataset.is_bucketed:
            tasks = [client.submit(summarize_buckets, job, files, bits, pure=False) for files in groups]
        else:
            frame = _dask().dataframe.from_map(partial(_split, job, bits), groups, meta=_frame([]))
            tasks = client.compute(_ended(job, frame, min(many, 1 << bits)).to_delayed())
        yield from _awaited(tasks, told)


def dask_summary(study: Study | str | PathLike[str], frame: Any) -> Summary:
    """Reduce the reports in a Dask DataFrame to the summary that `summarize` makes of them.

    It has the columns of an export: report_id, study, version, digest, payloads and, where the study has
    public fields, public. Work is done where the frame's own computations are: by the client that is set up.

    Args:
        study: the document that the reports answer, or the path of its file.
        frame: a dask.dataframe.DataFrame.

    Returns:
        The summary.

    Raises:
        InputError: reports cannot belong to the study, or there are none; or a worker of the client's has not
            what it needs, or workers were lost too often.
        SummaryError: the study needs its reports themselves.
        TransferError: the scheduler was lost.
        MissingExtraError: Dask is not installed.
    """
    study = study_of(study)
    refuse_kept_reports(mechanisms_of(study))
    refuse_columns(frame.columns)
    _refuse_texts(frame)
    job = Job(study.to_json())
    with _dask().config.set(SETTINGS), _on_workers_of(frame):
        packed = frame.map_partitions(partial(_pack_frame, job), meta=_frame([]))
        ended = _ended(job, packed, min(1 << FRAME_BITS, packed.npartitions)).compute()
    whole = merged(study, _parts_in(ended))
    assert whole.summary is not None
    return whole.summary


def _refuse_texts(frame: Any) -> None:
    """Raises InputError where Dask has made texts of payloads, as it does with what was pandas's."""
    kind = frame.dtypes["payloads"]
    # Of pandas's objects it says so too.
    if pd.api.types.is_string_dtype(kind) and not pd.api.types.is_object_dtype(kind):
        raise InputError(
            "the frame's payloads are texts, which Dask makes of pandas's objects: make the frame under "
            'dask.config.set({"dataframe.convert-string": False}), or read the files with dask.dataframe',
            code="engine.payloads_are_texts",
        )


def _dask() -> Any:
    try:
        import_module("dask.dataframe")
        return import_module("dask")
    except ImportError:
        raise MissingExtraError("dask", "dask") from None


def _distributed() -> Any:
    try:
        return import_module("distributed")
    except ImportError:
        raise MissingExtraError("dask", "distributed") from None


@contextmanager
def _client(workers: int | None, cluster: str | None) -> Iterator[Any]:
    """A client of a cluster, which is started here where no address is given. Raises UsageError."""
    with _dask().config.set(SETTINGS):
        distributed = _distributed()
        if cluster is None:
            with own_cluster(workers) as own, distributed.Client(own) as client:
                yield client
            return
        refuse_other_than_scheduler(cluster)
        with connected(distributed, cluster) as client:
            yield client


@contextmanager
def own_cluster(workers: int | None) -> Iterator[Any]:
    """Start processes of this machine as a cluster, and end them. Raises MissingExtraError."""
    distributed = _distributed()
    with _dask().config.set(OWN):
        # A thread each: what workers do holds Python's lock half of the time.
        own = distributed.LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=HERE, silence_logs=ERROR
        )
        with own:
            yield own


@contextmanager
def _on_workers_of(frame: Any) -> Iterator[None]:
    """Look at the workers that compute a frame, and say their loss; only a client's scheduler has some."""
    client = getattr(_dask().base.get_scheduler(collections=[frame]), "__self__", None)
    if client is None or not isinstance(client, _distributed().Client):
        yield
        return
    address = client.scheduler.address
    with saying_losses(client, address, is_ours=False):
        _look_at_workers(client, address)
        yield


def _look_at_workers(client: Any, address: str) -> None:
    """Wait for a worker, and look at all there are."""
    await_worker(client, address, tell_waiting)
    require_workers(client, {name: version(name) for name in SAME}, NEEDED)


def _awaited(futures: Sequence[Any], told: Callable[[int], None]) -> Iterator[Part]:
    """What tasks found, as they end; each gives a Part, or a frame of them."""
    distributed = _distributed()
    read = 0
    for _, found in distributed.as_completed(futures, with_results=True):
        if isinstance(found, BaseException):
            # Dask gives it as a result where the scheduler was lost.
            raise found
        parts = [found] if isinstance(found, Part) else _parts_in(found)
        read += sum(part.read for part in parts)
        told(read)
        yield from parts


def _frame(pairs: Iterable[tuple[int, bytes]]) -> pd.DataFrame:
    """Buckets' numbers, and their rows as bytes."""
    pairs = list(pairs)
    return pd.DataFrame(
        {
            "bucket": pd.Series([number for number, _ in pairs], dtype="int64"),
            "rows": pd.Series([rows for _, rows in pairs], dtype="object"),
        }
    )


def _split(job: Job, bits: int, files: Sequence[ReportFile]) -> pd.DataFrame:
    """Read files: a row for the rows of each bucket, and one for what was found beside them."""
    found = Part.empty(job.study)
    pairs = [(bucket, rows.tobytes()) for bucket, rows in split_files(job, files, bits, found)]
    return _frame([*pairs, (FOUND, pickle.dumps(found))])


def _pack_frame(job: Job, frame: pd.DataFrame, partition_info: Any = None) -> pd.DataFrame:
    """Pack a partition of somebody's frame in the same way."""
    number = 0 if partition_info is None else int(partition_info["number"])
    study = job.study
    found = Part.empty(study)
    packer = Packer(study, found)
    table = pa.Table.from_pandas(frame[[c for c in frame.columns if c in COLUMNS]], preserve_index=False)

    def packed() -> Iterator[Rows]:
        place = number << ROW_BITS
        for batch in table.to_batches(BATCH):
            yield packer.pack(batch, place, f"partition {number}")
            place += batch.num_rows

    pairs = [(bucket, rows.tobytes()) for bucket, rows in split_rows(packed(), FRAME_BITS)]
    return _frame([*pairs, (FOUND, pickle.dumps(found))])


def _parts_in(frame: pd.DataFrame) -> list[Part]:
    return [pickle.loads(one) for one in frame["rows"]]


def _ended(job: Job, frame: Any, partitions: int) -> Any:
    """A frame with what was found in each bucket; Dask brings the rows of one together."""
    shuffled = frame.shuffle("bucket", npartitions=max(1, partitions))
    return shuffled.map_partitions(partial(_end, job), meta=_frame([]))


def _end(job: Job, frame: pd.DataFrame) -> pd.DataFrame:
    """Count and reduce the buckets of a partition; what was found before goes on as it is."""
    study = job.study
    found, ending, width = Part.empty(study), Ending(job, study), RowLayout(study).width
    before = []
    for bucket, rows in frame.groupby("bucket")["rows"]:
        if bucket == FOUND:
            before += [(FOUND, one) for one in rows]
        else:
            ending.add(found, [np.frombuffer(one, np.uint8).reshape(-1, width) for one in rows])
    return _frame([*before, (FOUND, pickle.dumps(ending.finish(found)))])
