"""The subcommands of `ldpkit` on the analyst's side."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.analyses.cli import add_analysis, quantity_lines, run_analysis, wants_analysis
from inference.design import cli as design_cli
from inference.design.plan_cli import SAME_NUMBERS
from inference.projection.derive_cli import add_derive
from inference.published import NAMES
from inference.samplers import CHAINS, SAMPLERS
from ldp_client.commands.output import add_output, progress_of, show_written
from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import EXIT_NOT_TRUSTED, UsageError
from ldp_client.words.text import visible
from schemas.study import load_study
from summaries import cli as summaries_cli

ONE_FILE = (
    "fit takes one file of reports; join them: `ldpkit summarize STUDY.json FILE FILE --out summary.json` "
    "takes several, and fit takes that; or put files of NDJSON one behind the other. A secure sum has one "
    "total, which is fitted by itself. Put what has spaces in quotes"
)

if TYPE_CHECKING:
    from inference.results.intervals import Interval
    from inference.results.posterior import Posterior


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register summarize, fit, demo, plan, calibrate and derive."""
    summaries_cli.add_commands(subparsers)
    text = "fit a posterior to each question, from reports or a summary"
    _add_fit(add_command(subparsers, "fit", text, "fit study.json reports.ndjson --out posterior"))
    text = "run the whole pipeline on real data; ends with a report page"
    _add_demo(add_command(subparsers, "demo", text, "demo --out demo --n 500"))
    design_cli.add_commands(subparsers)
    add_derive(subparsers)


def _add_fit(fit: argparse.ArgumentParser) -> None:
    fit.add_argument("study", metavar="STUDY.json", nargs="?")
    fit.add_argument(
        "reports",
        metavar="REPORTS_OR_SUMMARY",
        nargs="?",
        help="NDJSON, CSV or Parquet, or what summarize wrote",
    )
    fit.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="folder for posterior.json, draws and the report (HTML, Markdown, CSV, LaTeX)",
    )
    fit.add_argument("--seed", type=int, default=0, metavar="N", help=SAME_NUMBERS)
    fit.add_argument(
        "--method",
        choices=list(dict.fromkeys([*SAMPLERS, *NAMES])),
        metavar="NAME",
        help="nuts (default), or gaussian_approx: a fast Gaussian approximation that says when it is "
        f"poor; for data holders' tables also {', '.join(NAMES)}",
    )
    fit.add_argument(
        "--draws",
        type=int,
        default=1000,
        metavar="N",
        help="draws that each chain keeps, a multiple of 100 up to 20000 (default 1000)",
    )
    fit.add_argument("--chains", type=int, metavar="N", help="chains (default 4)")
    fit.add_argument(
        "--question",
        action="append",
        metavar="ID",
        help="fit only this question; may be repeated (default: all)",
    )
    fit.add_argument(
        "--contamination",
        type=float,
        metavar="SHARE",
        help="also show bounds on shares and means if this share of reports is arbitrary, such as 0.01",
    )
    fit.add_argument(
        "--check",
        metavar="POSTERIOR.json",
        help="compare with an earlier result of this call: exit with 4 if they differ",
    )
    _add_intervals(fit)
    _add_earlier(fit)
    add_analysis(fit)
    add_output(fit)
    # Advice if more arguments were given.
    fit.set_defaults(run=run_fit, beyond=ONE_FILE)


def _add_intervals(fit: argparse.ArgumentParser) -> None:
    fit.add_argument(
        "--level",
        type=float,
        default=0.9,
        metavar="P",
        help="probability of the shown intervals (default 0.9; posterior.json keeps its own quantiles)",
    )
    fit.add_argument(
        "--interval",
        choices=["eti", "hdi"],
        default="eti",
        help="show equal-tailed (eti, default) or highest-density (hdi) intervals",
    )


def _add_earlier(fit: argparse.ArgumentParser) -> None:
    earlier = fit.add_argument_group("results of earlier commands, for the report")
    earlier.add_argument("--plan", metavar="DIR", help="output of `ldpkit plan`")
    earlier.add_argument("--calibration", metavar="DIR", help="output of `ldpkit calibrate`")
    earlier.add_argument("--audit", metavar="FILE.json", help="output of `ldpkit audit --out`")


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument("--out", default="demo", metavar="DIR", help="folder for the results (default: demo)")
    demo.add_argument("--n", type=int, default=None, metavar="N", help="how many people (default: all 6,366)")
    demo.add_argument("--epsilon", default="1", metavar="E", help="mean epsilon of six questions (default 1)")
    demo.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of data split and sampler, not of noise"
    )
    add_output(demo)
    demo.set_defaults(run=run_demo)


def run_fit(arguments: argparse.Namespace) -> int:
    """ldpkit fit STUDY.json REPORTS_OR_SUMMARY --out DIR [--seed N] [--method NAME] [--draws N] …"""
    from inference.results.intervals import interval_of

    interval = interval_of(arguments.level, arguments.interval)
    progress = progress_of(arguments)
    if wants_analysis(arguments):
        _refuse_earlier(arguments)
        found, again = run_analysis(arguments, progress, interval)
        lines = [*quantity_lines(found, interval), *again.lines]
        return _told(arguments, {found.question: found}, interval, lines, is_good=again.same)
    if arguments.study is None or arguments.reports is None:
        raise UsageError(
            "fit needs STUDY.json and REPORTS, or --table, --design and --formula", code="fit.inputs_missing"
        )
    study = load_study(arguments.study)
    from inference.fitting import fit
    from inference.results.earlier_steps import read_earlier
    from inference.results.folder import save_report
    from inference.results.provenance import made_by
    from inference.results.reproduction import compared_with
    from inference.results.saving import new_folder
    from summaries.progress import reading_of
    from summaries.reading import load_evidence

    chosen: dict[str, Any] = {
        "method": arguments.method or "nuts",
        "chains": CHAINS if arguments.chains is None else arguments.chains,
    }
    earlier = read_earlier(study, arguments.plan, arguments.calibration, arguments.audit)
    with new_folder(Path(arguments.out)) as folder:
        evidence = load_evidence(study, arguments.reports, reading_of(progress, [arguments.reports]))
        made = made_by(arguments, **chosen)
        compare = compared_with(arguments.check, made)
        posteriors = fit(
            study,
            evidence,
            arguments.seed,
            progress,
            draws=arguments.draws,
            questions=arguments.question,
            contamination=arguments.contamination or 0.0,
            **chosen,
        )
        joined = earlier(posteriors)
        made = replace(made, beside=joined.files)
        save_report(study, posteriors, folder, interval=interval, made=made, earlier=joined)
        again = compare(folder)
    more = [
        f"{line.question}: {line.what}: {line.state or 'no verdict'}: {visible(line.says)}"
        for line in joined.lines
    ]
    is_good = joined.ok and again.same
    return _told(arguments, joined.on(posteriors), interval, [*more, *again.lines], is_good=is_good)


def _refuse_earlier(arguments: argparse.Namespace) -> None:
    """Raise InputError if a formula is combined with the results of earlier commands."""
    for name in ("plan", "calibration", "audit"):
        if getattr(arguments, name) is not None:
            raise UsageError(
                f"--{name} is of a study's own models: leave it out with --formula, --crosstab or --table",
                code="options.not_with_formula",
            )


def _told(
    arguments: argparse.Namespace,
    posteriors: Mapping[str, Posterior],
    interval: Interval,
    more: Iterable[str] = (),
    is_good: bool = True,
) -> int:
    """Print the results and their files; return the exit code, 0 only if is_good and every verdict is."""
    where = Path(arguments.out) / "report.html"
    lines = [*verdict_lines(posteriors, interval), f"report: {where}", *more]
    is_good &= all(found.diagnostics.ok for found in posteriors.values())
    show_written(arguments, lines, "posterior.json", ok=is_good)
    return 0 if is_good else EXIT_NOT_TRUSTED


def run_demo(arguments: argparse.Namespace) -> int:
    """ldpkit demo [--n N] [--epsilon E] [--seed N] [--out DIR]"""
    from inference.demo.run import run
    from inference.results.intervals import USUAL

    progress = progress_of(arguments)
    posteriors = run(Path(arguments.out), arguments.n, arguments.epsilon, arguments.seed, progress)
    return _told(arguments, posteriors, USUAL)


def if_false(posterior: Posterior, name: str, interval: Interval) -> str:
    """Return the range of a parameter if some reports were false, to print after its interval."""
    from inference.results.identified import level_of_sets, set_of

    ends = set_of(posterior.identified, name)
    if posterior.identified is None or ends is None:
        return ""
    said = _between(ends, posterior.is_share(name))
    return f"; if {100 * posterior.identified.share:g} % were false {said}{level_of_sets(interval)}"


def _between(ends: tuple[float, float], share: bool) -> str:
    low, high = (100 * ends[0], 100 * ends[1]) if share else ends
    return f"{low:.4g} to {high:.4g}{' %' if share else ''}"


def verdict_lines(posteriors: Mapping[str, Posterior], interval: Interval) -> Iterator[str]:
    """Yield each question's verdict, the worst part first, then a line for each parameter, then notes."""
    for name, posterior in posteriors.items():
        verdict = posterior.verdict
        leads = "ok" if verdict.ok else "NOT OK"
        yield f"{name} ({posterior.model}, {posterior.size_in_words()}): {leads}: {verdict.headline()}"
        for part, state, meaning in verdict.lines():
            yield f"  {part + ':':17}{state}: {meaning}"
        for line in verdict.reasons:
            yield f"  {line}"
        width = max(map(len, posterior.draws))
        for row_name in posterior.draws:
            one, share = posterior[row_name], posterior.is_share(row_name)
            middle = f"{100 * one.median:8.4g} %" if share else f"{one.median:10.4g}"
            numbers = f"{middle}   {interval.name} {_between(interval.of(one.draws), share)}"
            yield f"  {visible(row_name):{width}} {numbers}{if_false(posterior, row_name, interval)}"
        for line in posterior.diagnostics.notes:
            yield f"  {visible(line)}"
