"""`summarize_dataset` and `count_dataset`: a study's reports in Parquet, by the engine of one's choice."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from importlib import import_module
from os import PathLike

from ldp_client import mechanisms_of
from ldp_client.documents.errors import UsageError
from schemas import Study
from summaries.engines import ENGINES
from summaries.engines.counting import Counting, ReportCounts
from summaries.engines.dataset import Dataset, find_dataset
from summaries.engines.local import run_local
from summaries.engines.parts import Part, merged, refuse_kept_reports
from summaries.engines.planning import counted, rows_of
from summaries.engines.work import Job
from summaries.extras import naming_extra
from summaries.reducing import study_of
from summaries.refusing import left_out_notes
from summaries.summary import Summary

Addresses = str | PathLike[str] | Sequence[str | PathLike[str]]
# How many rows were read so far, and of how many.
Told = Callable[[int, int], None]
# What each engine needs, then what says how it is called.
_LOADED = {
    "local": ("pyarrow",),
    "dask": ("distributed", "summaries.engines.on_dask"),
    "spark": ("pyspark", "summaries.engines.on_spark"),
}


def _to_nobody(_count: int, _total: int) -> None:
    """Where nobody waits for progress."""


def summarize_dataset(
    study: Study | str | PathLike[str],
    addresses: Addresses,
    engine: str = "local",
    *,
    workers: int | None = None,
    cluster: str | None = None,
    check: bool = True,
    told: Told = _to_nobody,
) -> Summary:
    """Reduce the reports in a dataset, or in Parquet files, to the summary that `summarize` makes of them.

    Each report counts once, however often it stands in however many files; the result is the same to the last
    bit for every engine and any number of workers, of which each needs less than 1 GB.

    Args:
        study: the document that the reports answer, or the path of its file.
        addresses: a dataset's root, or its folder of this study, on a disk or anywhere that fsspec reaches;
            or Parquet files, in whose names * and ? stand for others.
        engine: "local" has processes of this machine, "dask" and "spark" those of a cluster.
        workers: how many processes, or workers of a cluster that is started for this; by default one for each
            core. Not beside `cluster`, which has its own.
        cluster: of Dask a scheduler's address, tcp://…; of Spark a master, spark://… or local[4].
        check: compare the files' bytes with the SHA-256 that the manifest states.
        told: is told now and then how many rows were read, and of how many.

    Returns:
        The summary. Reports on other versions are left out; that, and repeated ones, are said on standard
        error.

    Raises:
        InputError: files are damaged, which are named; reports cannot belong to the study, which are counted,
            and the first few shown; or there are none; or a dataset's folder has files of reports that its
            manifest does not list.
        UsageError: there is no such engine or cluster, or workers are given beside a cluster.
        SummaryError: the study needs its reports themselves.
        TransferError: a store or a cluster cannot be reached, or was lost.
        MissingExtraError: the engine is not installed.
    """
    study = study_of(study)
    refuse_kept_reports(mechanisms_of(study))
    with naming_extra(engine):
        whole, _ = _run(study, addresses, engine, workers, cluster, check, None, told)
    assert whole.summary is not None
    return whole.summary


def count_dataset(
    study: Study | str | PathLike[str],
    addresses: Addresses,
    names: Sequence[str],
    engine: str = "local",
    *,
    workers: int | None = None,
    cluster: str | None = None,
    check: bool = True,
    told: Told = _to_nobody,
) -> ReportCounts:
    """Count equal reports to some questions, beside public fields: all that `analyse` needs for these.

    Args:
        study: the document that the reports answer, or the path of its file.
        addresses: as in `summarize_dataset`, and so are all others.
        names: ids of the questions, choices of few words, and of the public fields.
        engine: who does it.
        workers: how many do it.
        cluster: where they are.
        check: whether files are compared with the manifest.
        told: is told how far it is.

    Returns:
        The counts, which `analyse` takes in place of reports.

    Raises:
        InputError: as `summarize_dataset` raises it; or there are more than a million different reports.
        UsageError: a name is none of the study's.
        MissingExtraError: the engine is not installed.
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
    with naming_extra(engine):
        whole, notes = _run(study, addresses, engine, workers, cluster, check, asked, told)
    counting = Counting(study, asked)
    return ReportCounts(study, asked, {counting.key(key): n for key, n in whole.counts.items()}, notes)


def _run(
    study: Study,
    addresses: Addresses,
    engine: str,
    workers: int | None,
    cluster: str | None,
    check: bool,
    asked: tuple[str, ...] | None,
    told: Told,
) -> tuple[Part, tuple[str, ...]]:
    """What all workers found together, and notes on it."""
    if engine not in ENGINES:
        raise UsageError(
            f"engine must be one of {', '.join(ENGINES)}, not {engine}", code="engine.unknown_engine"
        )
    if engine == "local" and cluster is not None:
        raise UsageError("a cluster is for the engines dask and spark", code="engine.cluster_without_engine")
    if cluster is not None and workers is not None:
        raise UsageError(
            "a cluster has its own workers: leave --workers out, or --cluster",
            code="engine.cluster_and_workers",
        )
    if workers is not None and workers < 1:
        raise UsageError("workers must be 1 or more", code="engine.too_few_workers")
    # What is not installed is said before anything is read.
    for module in _LOADED[engine]:
        import_module(module)
    dataset = counted(find_dataset(study, addresses))
    job = Job(study.to_json(), tuple(file.name for file in dataset.files), check, asked)
    total = rows_of(dataset)
    parts = _parts(job, dataset, engine, workers, cluster, lambda count: told(count, max(count, total)))
    with closing(parts):
        whole = merged(study, parts, dataset.left_out)
    return whole, left_out_notes(whole.others.versions)


def _parts(
    job: Job,
    dataset: Dataset,
    engine: str,
    workers: int | None,
    cluster: str | None,
    told: Callable[[int], None],
) -> Generator[Part, None, None]:
    """What is found, as it is: together it may be far more than what it adds up to."""
    if engine == "local":
        yield from run_local(job, dataset, workers, told)
    elif engine == "dask":
        from summaries.engines.on_dask import run_dask

        yield from run_dask(job, dataset, workers, cluster, told)
    else:
        from summaries.engines.on_spark import run_spark

        yield from run_spark(job, dataset, workers, cluster, told)
