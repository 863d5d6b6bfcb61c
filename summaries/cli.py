"""The subcommand `ldpkit summarize`; neither it nor what it reads with needs JAX."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from ldp_client.commands.output import add_output, progress_of, show
from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import UsageError
from schemas.study import load_study
from summaries.extras import naming_extra

if TYPE_CHECKING:
    from ldp_client.commands.output import Progress
    from schemas import Study
    from summaries import Summary


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register summarize; the commands of inference do so, and any other door of the package may."""
    text = "reduce reports to a fixed-size, mergeable summary"
    example = "summarize study.json reports.ndjson --out summary.json"
    _add_summarize(add_command(subparsers, "summarize", text, example))


def _add_summarize(summarize: argparse.ArgumentParser) -> None:
    summarize.add_argument("study", metavar="STUDY.json")
    summarize.add_argument(
        "reports",
        nargs="+",
        metavar="REPORTS",
        help="files (NDJSON, CSV or Parquet); or a dataset of very many reports: its folder or its address",
    )
    summarize.add_argument("--out", required=True, metavar="FILE")
    how = summarize.add_argument_group("options for a dataset or Parquet files")
    how.add_argument("--workers", type=int, metavar="N", help="how many processes read (default: all cores)")
    how.add_argument(
        "--trust-files", action="store_true", help="do not compare files with the SHA-256 of the manifest"
    )
    add_output(summarize)
    summarize.set_defaults(run=run_summarize)


def _cells_in_words(study: Study, summary: Summary) -> str:
    """Say whether analyses by public field can be made of the summary."""
    if summary.cells is None:
        return f"not kept by cell: {study.cells:,} are too many; analyses by public field need the reports"
    return f"kept by cell: {len(summary.cells):,} of {study.cells:,} have reports"


def _refuse_out(study: Study, arguments: argparse.Namespace) -> None:
    """Raise InputError if the result would replace one of its inputs, or another file."""
    from ldp_client.files.disk import refuse_replacing, refuse_replacing_other, refuse_table
    from summaries.summary import FORMAT

    refuse_replacing(arguments.out, (arguments.study, *arguments.reports))
    if _is_table(arguments):
        from summaries.engines.dataset import refuse_replacing_part

        refuse_replacing_part(arguments.out, study, arguments.reports)
    refuse_table(arguments.out)
    refuse_replacing_other(arguments.out, FORMAT)


def _is_table(arguments: argparse.Namespace) -> bool:
    return all(_has_columns(path) for path in arguments.reports)


def _summary(study: Study, arguments: argparse.Namespace, progress: Progress) -> Summary:
    """Read columns by processes, or reports one by one where there are no columns."""
    from summaries.progress import columns_of, reading_of

    paths = arguments.reports
    if not _is_table(arguments):
        if arguments.workers or arguments.trust_files:
            raise UsageError(
                "--workers and --trust-files are for a dataset, or for Parquet files",
                code="summary.engine_option",
            )
        from summaries.reading import summarize_files

        return summarize_files(study, paths, reading_of(progress, paths))
    from summaries.engines import summarize_dataset

    return summarize_dataset(
        study,
        paths,
        workers=arguments.workers,
        check=not arguments.trust_files,
        told=columns_of(progress),
    )


def _has_columns(path: str) -> bool:
    """Return True for a Parquet file, and for a folder or an address that may hold a dataset."""
    return path.lower().endswith(".parquet") or "://" in path or os.path.isdir(path)


def run_summarize(arguments: argparse.Namespace) -> int:
    """ldpkit summarize STUDY.json REPORTS... --out FILE [--workers N]"""
    with naming_extra():
        return _summarize(arguments)


def _summarize(arguments: argparse.Namespace) -> int:
    study = load_study(arguments.study)
    from ldp_client import mechanisms_of
    from ldp_client.files.disk import replacing
    from summaries.influence import FALSE_SHARE, influence_in_words

    _refuse_out(study, arguments)
    summary = _summary(study, arguments, progress_of(arguments))
    with replacing(arguments.out, read=(arguments.study, *arguments.reports)) as file:
        file.write(summary.to_json() + "\n")
    lines = [_cells_in_words(study, summary)] if study.public else []
    every = sum(part.n for part in summary.questions.values())
    for name, mechanism in mechanisms_of(study).items():
        n = summary.questions[name].n
        words = influence_in_words(
            mechanism, FALSE_SHARE, n / every if study.sample_one_question and n else 1.0
        )
        lines.append(f"{name}: {n} reports. {words}")
    counts = {name: part.n for name, part in summary.questions.items()}
    document = {"study": study.id, "version": study.version, "digest": study.digest, "file": arguments.out}
    show(arguments, lines, {**document, "reports": counts})
    return 0
