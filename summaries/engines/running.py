"""`summarize_dataset` and `count_dataset`: a study's Parquet files, read by processes of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from os import PathLike

from ldp_client import mechanisms_of
from ldp_client.documents.errors import UsageError
from schemas import Study
from summaries.engines.counting import Counting, ReportCounts
from summaries.engines.dataset import find_dataset
from summaries.engines.local import run_local
from summaries.engines.parts import Part, merged, refuse_kept_reports
from summaries.engines.planning import counted, rows_of
from summaries.engines.work import Job
from summaries.extras import naming_extra
from summaries.reducing import study_of
from summaries.refusing import left_out_notes
from summaries.summary import Summary

Addresses = str | PathLike[str] | Sequence[str | PathLike[str]]
# Called with how many rows were read so far, and the total.
Told = Callable[[int, int], None]


def _to_nobody(_count: int, _total: int) -> None:
    """Ignore progress."""


def summarize_dataset(
    study: Study | str | PathLike[str],
    addresses: Addresses,
    *,
    workers: int | None = None,
    check: bool = True,
    told: Told = _to_nobody,
) -> Summary:
    """Reduce the reports in a dataset, or in Parquet files, to the summary that `summarize` makes of them.

    Each report counts once, however often it occurs in the files. The result is the same to the last bit for
    any number of workers; each worker needs less than 1 GB.

    Args:
        study: the document that the reports answer, or the path of its file.
        addresses: a dataset's root, or its folder of this study, on a disk or anywhere that fsspec reaches;
            or Parquet files, whose names may have the wildcards * and ?.
        workers: how many processes; by default one for each core.
        check: compare the files' bytes with the SHA-256 that the manifest states.
        told: is called now and then with how many rows were read, and the total.

    Returns:
        The summary. Reports on other versions are left out; that, and repeated reports, are noted on standard
        error.

    Raises:
        InputError: files are damaged (the message names them); reports cannot belong to the study (it counts
            them and shows the first few); there are none; or a dataset's folder has files of reports that its
            manifest does not list.
        UsageError: workers are fewer than one.
        SummaryError: the study needs its reports themselves.
        TransferError: a store cannot be reached.
        MissingExtraError: pyarrow is not installed.
    """
    study = study_of(study)
    refuse_kept_reports(mechanisms_of(study))
    with naming_extra():
        whole, _ = _run(study, addresses, workers, check, None, told)
    assert whole.summary is not None
    return whole.summary


def count_dataset(
    study: Study | str | PathLike[str],
    addresses: Addresses,
    names: Sequence[str],
    *,
    workers: int | None = None,
    check: bool = True,
    told: Told = _to_nobody,
) -> ReportCounts:
    """Count equal reports to some questions, by public fields: all that `analyse` needs for these.

    Args:
        study: the document that the reports answer, or the path of its file.
        addresses: as in `summarize_dataset`, which also documents the exceptions not listed here.
        names: ids of the questions (choices with few different reports), and of the public fields.
        workers: how many processes.
        check: whether files are compared with the manifest.
        told: is called with the progress.

    Returns:
        The counts, which `analyse` takes instead of reports.

    Raises:
        InputError: as `summarize_dataset` raises it; or there are more than a million different reports.
        UsageError: a name is none of the study's.
        MissingExtraError: pyarrow is not installed.
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
    with naming_extra():
        whole, notes = _run(study, addresses, workers, check, asked, told)
    counting = Counting(study, asked)
    return ReportCounts(study, asked, {counting.key(key): n for key, n in whole.counts.items()}, notes)


def _run(
    study: Study,
    addresses: Addresses,
    workers: int | None,
    check: bool,
    asked: tuple[str, ...] | None,
    told: Told,
) -> tuple[Part, tuple[str, ...]]:
    """Return the findings of all workers together, and notes on them."""
    if workers is not None and workers < 1:
        raise UsageError("workers must be 1 or more", code="engine.too_few_workers")
    dataset = counted(find_dataset(study, addresses))
    job = Job(study.to_json(), tuple(file.name for file in dataset.files), check, asked)
    total = rows_of(dataset)
    parts = run_local(job, dataset, workers, lambda count: told(count, max(count, total)))
    with closing(parts):
        whole = merged(study, parts, dataset.left_out)
    return whole, left_out_notes(whole.others.versions)
