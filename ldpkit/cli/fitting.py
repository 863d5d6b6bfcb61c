"""The command fit, and what `survey`, `try` and `demo` have in common with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ldp_client.documents.errors import EXIT_NOT_TRUSTED
from ldpkit.cli.commands import command, out_option
from ldpkit.cli.output import progress, show
from schemas.study import load_study
from summaries.progress import reading_of

if TYPE_CHECKING:
    from inference.results.intervals import Interval
    from inference.results.posterior import Posterior

F = TypeVar("F", bound=Callable[..., Any])


def sampling_options(function: F) -> F:
    """Add --seed, --method, --draws, --level, --check and --strict."""
    for option in (
        click.option(
            "--seed",
            type=int,
            default=0,
            metavar="N",
            help="the same seed gives the same numbers (default 0)",
        ),
        click.option(
            "--method", default="nuts", metavar="NAME", help="nuts (default); gaussian_approx is fast"
        ),
        click.option(
            "--draws", type=int, default=1000, metavar="N", help="draws of each chain (default 1000)"
        ),
        click.option(
            "--level", type=float, default=0.9, metavar="P", help="level of intervals (default 0.9)"
        ),
        click.option("--check", metavar="POSTERIOR.json", help="compare with an earlier result of this call"),
        click.option("--strict", is_flag=True, help="exit with 4 unless every quantity is usable"),
    )[::-1]:
        function = option(function)
    return function


@command("fit", "fit study.json reports.ndjson --out posterior")
@click.argument("study", metavar="STUDY.json")
@click.argument("reports", nargs=-1, required=True, metavar="REPORTS_OR_SUMMARY...")
@out_option("a new folder for posterior.json, draws, the report and its numbers (CSV)", "DIR")
@click.option(
    "--question", "questions", multiple=True, metavar="ID", help="fit only this question; repeatable"
)
@click.option(
    "--contamination",
    type=float,
    default=0.0,
    metavar="SHARE",
    help="also show bounds on shares and means if this share of reports is arbitrary, such as 0.01",
)
@sampling_options
def fit(
    study: str,
    reports: tuple[str, ...],
    out: str,
    questions: tuple[str, ...],
    contamination: float,
    level: float,
    check: str | None,
    strict: bool,
    **sampling: Any,
) -> int:
    """Fit a posterior to each question.

    REPORTS_OR_SUMMARY is NDJSON or Parquet, one file or several, or what summarize wrote.
    """
    document = load_study(study)
    from inference.fitting import fit as fit_study
    from inference.results.intervals import interval_of
    from inference.results.provenance import made_by, words_of
    from inference.results.report import save_report
    from inference.results.reproduction import compared, earlier_result
    from inference.results.saving import new_folder
    from summaries.reading import evidence_of

    # 1. Read what decides whether the fit can be made.
    interval, tell = interval_of(level), progress()
    with new_folder(Path(out)) as folder:
        evidence = evidence_of(document, reports, reading_of(tell))
        options = words_of(**sampling, level=level, contamination=contamination or None, question=questions)
        made = made_by("fit", [[Path(path)] for path in (study, *reports)] + options)
        earlier = earlier_result(check, made)
        # 2. Fit.
        sampling |= {"questions": questions or None, "contamination": contamination}
        posteriors = fit_study(document, evidence, progress=tell, **sampling)
        # 3. Write the folder.
        save_report(posteriors, folder, document, interval=interval, made=made)
        same, lines = compared(check, earlier, folder)
    return show_posteriors(posteriors, out, interval, lines, same, strict)


def show_posteriors(
    posteriors: Mapping[str, Posterior],
    out: str,
    interval: Interval,
    more: Iterable[str] = (),
    is_good: bool = True,
    strict: bool = False,
) -> int:
    """Print the results and where the report is. Return the exit code.

    It is 0 if every headline may be used, at least with care. more: further lines. is_good: whether nothing
    else speaks against the results. strict: demand that every quantity is usable.
    """
    from inference.results.printed import text_of

    texts = [text_of(posterior, interval) for posterior in posteriors.values()]
    show([*texts, f"report: {Path(out) / 'report.html'}", *more])
    verdicts = [posterior.verdict for posterior in posteriors.values()]
    is_good &= not any(verdict.against if strict else verdict.bad for verdict in verdicts)
    return 0 if is_good else EXIT_NOT_TRUSTED
