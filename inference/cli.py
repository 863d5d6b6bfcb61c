"""The subcommands of `ldpkit` on the analyst's side: summarize, fit, demo, plan, calibrate, project."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from inference.analyses.cli import add_analysis, print_quantities, run_analysis, wants_analysis
from inference.design import cli as design_cli
from inference.design.cli import SAME_NUMBERS, tell
from inference.projection.cli import add_project
from inference.published import NAMES
from inference.samplers import SAMPLERS
from ldp_client.commands.parsers import EXIT_NOT_TRUSTED, add_command
from ldp_client.documents.errors import InputError
from ldp_client.files.disk import load_study
from ldp_client.words.text import visible
from summaries import cli as summaries_cli
from summaries.influence import FALSE_SHARE

if TYPE_CHECKING:
    from inference.results.posterior import Posterior


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register summarize, fit, demo, plan, calibrate and project."""
    summaries_cli.add_commands(subparsers)
    text = "fit a posterior to each question, from reports or a summary"
    _add_fit(add_command(subparsers, "fit", text, "fit study.json reports.ndjson --out posterior"))
    text = "run the whole pipeline on real data; ends with a report page"
    _add_demo(add_command(subparsers, "demo", text, "demo --out demo --devices 500"))
    design_cli.add_commands(subparsers)
    add_project(subparsers)


def _add_fit(fit: argparse.ArgumentParser) -> None:
    fit.add_argument("study", metavar="STUDY.json", nargs="?")
    fit.add_argument(
        "reports", metavar="REPORTS_OR_SUMMARY", nargs="?", help="NDJSON or Parquet, or what summarize wrote"
    )
    fit.add_argument("--out", required=True, metavar="DIR", help="gets posterior.json, draws and report.html")
    fit.add_argument("--seed", type=int, default=0, metavar="N", help=SAME_NUMBERS)
    fit.add_argument(
        "--method",
        choices=list(dict.fromkeys([*SAMPLERS, *NAMES])),
        metavar="NAME",
        help="nuts (default), or laplace: a fast Gaussian approximation that says when it is poor; for data "
        f"holders' tables also {', '.join(NAMES)}",
    )
    fit.add_argument(
        "--draws",
        type=int,
        default=1000,
        metavar="N",
        help="draws that each of four chains keeps, a multiple of 100 up to 20000 (default 1000)",
    )
    fit.add_argument(
        "--false-reports",
        type=float,
        default=FALSE_SHARE,
        metavar="SHARE",
        help="of reports that may have come from anything at all: what every quantity may be then (default "
        f"{FALSE_SHARE:g}; 0 leaves it out)",
    )
    add_analysis(fit)
    fit.set_defaults(run=run_fit)


def _add_demo(demo: argparse.ArgumentParser) -> None:
    demo.add_argument("--out", default="demo", metavar="DIR", help="where the results go (default: demo)")
    demo.add_argument("--devices", type=int, default=None, metavar="N", help="default: all 6,366 people")
    demo.add_argument("--epsilon", default="1", metavar="E", help="a sixth of all questions' (default 1)")
    demo.add_argument(
        "--seed", type=int, default=0, metavar="N", help="of data split and sampler, not of noise"
    )
    demo.set_defaults(run=run_demo)


def run_fit(arguments: argparse.Namespace) -> int:
    """ldpkit fit STUDY.json REPORTS_OR_SUMMARY --out DIR [--seed N] [--method NAME] [--draws N] …"""
    if wants_analysis(arguments):
        found = run_analysis(arguments, tell)
        code = _told(arguments, {found.question: found})
        print_quantities(found)
        return code
    if arguments.study is None or arguments.reports is None:
        raise InputError("fit needs STUDY.json and REPORTS, or --table, --design and --formula")
    study = load_study(arguments.study)
    from inference.fitting import fit
    from inference.results.folder import save_report, whole_folder
    from summaries.reading import load_evidence

    with whole_folder(Path(arguments.out), study=study) as folder:
        evidence = load_evidence(study, arguments.reports)
        posteriors = fit(
            study,
            evidence,
            arguments.seed,
            tell,
            method=arguments.method or "nuts",
            draws=arguments.draws,
            false_reports=arguments.false_reports,
        )
        save_report(study, posteriors, folder)
    return _told(arguments, posteriors)


def _told(arguments: argparse.Namespace, posteriors: Mapping[str, Posterior]) -> int:
    """Print what was found and where it stands; the exit code."""
    print_verdicts(posteriors)
    print(f"report: {Path(arguments.out) / 'report.html'}")
    return exit_code(posteriors)


def run_demo(arguments: argparse.Namespace) -> int:
    """ldpkit demo [--devices N] [--epsilon E] [--seed N] [--out DIR]"""
    from inference.demo.run import run

    posteriors = run(Path(arguments.out), arguments.devices, arguments.epsilon, arguments.seed, tell)
    return _told(arguments, posteriors)


def exit_code(posteriors: Mapping[str, Posterior]) -> int:
    """0 where every question's verdict is good in all its parts, else 4."""
    return 0 if all(found.diagnostics.ok for found in posteriors.values()) else EXIT_NOT_TRUSTED


def if_false(posterior: Posterior, name: str) -> str:
    """What a parameter may be if some reports were false, behind its interval."""
    from inference.results.identified import set_of

    ends = set_of(posterior.identified, name)
    if posterior.identified is None or ends is None:
        return ""
    return f"; if {100 * posterior.identified.share:g} % were false {ends[0]:.4g} to {ends[1]:.4g}"


def print_verdicts(posteriors: Mapping[str, Posterior]) -> None:
    """Of each question its verdict, the worst part first, then a line a parameter, then notes."""
    for name, posterior in posteriors.items():
        verdict = posterior.verdict
        leads = "ok" if verdict.ok else "NOT OK"
        print(f"{name} ({posterior.model}, {posterior.size_in_words()}): {leads}: {verdict.headline()}")
        for part, state, meaning in verdict.lines():
            print(f"  {part + ':':11}{state}: {meaning}")
        for line in verdict.reasons:
            print(f"  {line}")
        rows = posterior.summary()
        width = max(map(len, rows))
        for row_name, row in rows.items():
            numbers = f"{row['q50']:10.4g}   90 % interval {row['q05']:.4g} to {row['q95']:.4g}"
            print(f"  {visible(row_name):{width}} {numbers}{if_false(posterior, row_name)}")
        for line in posterior.diagnostics.notes:
            print(f"  {visible(line)}")
