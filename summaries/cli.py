"""The subcommand `ldpkit summarize`; neither it nor what it reads with needs JAX."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ldp_client.commands.output import add_output, progress_of, show
from ldp_client.commands.parsers import add_command
from ldp_client.files.disk import load_study

if TYPE_CHECKING:
    from schemas import Study
    from summaries import Summary


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register summarize; the commands of inference do so, and any other door of the package may."""
    text = "reduce reports to a fixed-size, mergeable summary"
    example = "summarize study.json reports.ndjson --out summary.json"
    _add_summarize(add_command(subparsers, "summarize", text, example))


def _add_summarize(summarize: argparse.ArgumentParser) -> None:
    summarize.add_argument("study", metavar="STUDY.json")
    summarize.add_argument("reports", nargs="+", metavar="REPORTS", help="NDJSON, CSV or Parquet")
    summarize.add_argument("--out", required=True, metavar="FILE")
    add_output(summarize)
    summarize.set_defaults(run=run_summarize)


def _cells_in_words(study: Study, summary: Summary) -> str:
    """Say whether analyses by public field can be made of the summary."""
    if summary.cells is None:
        return f"not kept by cell: {study.cells:,} are too many; analyses by public field need the reports"
    return f"kept by cell: {len(summary.cells):,} of {study.cells:,} have reports"


def run_summarize(arguments: argparse.Namespace) -> int:
    """ldpkit summarize STUDY.json REPORTS... --out FILE"""
    study = load_study(arguments.study)
    from ldp_client import mechanisms_of
    from ldp_client.files.disk import refuse_replacing, replacing
    from summaries.influence import FALSE_SHARE, influence_in_words
    from summaries.reading import summarize_files
    from summaries.telling import reading_of

    read = (arguments.study, *arguments.reports)
    refuse_replacing(arguments.out, read)
    told = reading_of(progress_of(arguments), arguments.reports)
    summary = summarize_files(study, arguments.reports, told)
    with replacing(arguments.out, read=read) as file:
        file.write(summary.to_json() + "\n")
    lines = [_cells_in_words(study, summary)] if study.public else []
    for name, mechanism in mechanisms_of(study).items():
        words = influence_in_words(mechanism, FALSE_SHARE)
        lines.append(f"{name}: {summary.questions[name].n} reports. {words}")
    counts = {name: part.n for name, part in summary.questions.items()}
    document = {"study": study.id, "version": study.version, "digest": study.digest, "file": arguments.out}
    show(arguments, lines, {**document, "reports": counts})
    return 0
