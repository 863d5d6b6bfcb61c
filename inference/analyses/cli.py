"""Run `ldpkit fit` with a formula, on device reports, a survey's table with its design, or waves."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inference.samplers import CHAINS, SAMPLERS
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.words.text import visible

MOST_PRINTED = 40
# Options of analyses. Without a formula or --crosstab, `ldpkit fit` rejects them.
OPTIONS = (
    "table", "design", "formula", "family", "prior", "missing", "crosstab", "by", "poststratify", "weights",
    "wave",
)  # fmt: skip


def add_analysis(fit: argparse.ArgumentParser) -> None:
    """Add the options of analyses to the parser of `ldpkit fit`."""
    own = fit.add_argument_group("analyses of private and public columns")
    own.add_argument(
        "--formula", metavar="FORMULA", help='fit a formula, e.g. "ever ~ age + region + (1 | clinic)"'
    )
    own.add_argument(
        "--crosstab", metavar="A,B", help="estimate the joint table of private columns, instead of a formula"
    )
    own.add_argument(
        "--table", metavar="TABLE.csv", help="read a survey's table instead of a study's reports"
    )
    own.add_argument("--design", metavar="DESIGN.json", help="read the design of the table's private columns")
    own.add_argument(
        "--wave",
        action="append",
        metavar="NAME=FILES",
        help="add a wave: STUDY.json,REPORTS, or TABLE.csv with --design (repeatable); `wave` is a column",
    )
    own.add_argument("--family", metavar="NAME", help="set the outcome's family (default: by its kind)")
    own.add_argument(
        "--prior",
        action="append",
        metavar="PRIOR",
        help='set priors: flat, NAME=flat, or a JSON file {"NAME": {"distribution": …}}; may be repeated',
    )
    own.add_argument("--missing", metavar="HOW", help="rows with missing values: error (default) or drop")
    own.add_argument("--by", metavar="COLUMN", help="also show shares within each level of a public column")
    own.add_argument(
        "--poststratify", metavar="CENSUS.csv", help="shares and totals over its rows, `count` people each"
    )
    own.add_argument(
        "--weights", metavar="COLUMN", help="column with the number of people that each row stands for"
    )


def wants_analysis(arguments: argparse.Namespace) -> bool:
    """Return True if a fit was called with an option that only analyses take."""
    return any(getattr(arguments, name) is not None for name in OPTIONS)


def run_analysis(arguments: argparse.Namespace, tell: Any, interval: Any) -> Any:
    """Fit a formula, or cross columns, and write the folder.

    Returns the posterior, and its comparison with an earlier one. Raises InputError.
    """
    _check(arguments)
    from inference.analyses.analysing import analyse_table
    from inference.analyses.crossing import cross_table
    from inference.analyses.inputs import source_of
    from inference.analyses.report_page import check_file_name, save_analysis
    from inference.results.provenance import made_by
    from inference.results.reproduction import compared_with
    from inference.results.saving import new_folder

    names, by = _crossed(arguments)
    for name in names:
        check_file_name(name)
    also = [*names, *by]
    if arguments.formula is not None:
        check_file_name(arguments.formula.split("~")[0].strip().strip("`"))
        also = _population(arguments).columns()
    source = source_of(arguments, also)
    for line in source.words:
        print(line, file=sys.stderr if arguments.json else sys.stdout)
    with new_folder(Path(arguments.out)) as folder:
        table = source.table()
        made = made_by(arguments)
        compare = compared_with(arguments.check, made)
        if arguments.crosstab is not None:
            found = cross_table(table, names, arguments.by, progress=tell, **_crossed_by(arguments))
        else:
            options = _options(arguments, source.priors)
            found = analyse_table(table, arguments.formula, progress=tell, **options)
        save_analysis(found, folder, source.title, interval, made)
        again = compare(folder)
    return found, again


def quantity_lines(found: Any, interval: Any = None) -> Iterator[str]:
    """Yield the quoted quantities as sentences, at most MOST_PRINTED of them."""
    from inference.analyses.report_page import sentence
    from inference.results.intervals import USUAL

    for quantity in found.quantities[:MOST_PRINTED]:
        yield f"  {visible(sentence(quantity, interval or USUAL))}"
    if len(found.quantities) > MOST_PRINTED:
        yield f"  … and {len(found.quantities) - MOST_PRINTED} more in posterior.json"


def _check(arguments: argparse.Namespace) -> None:
    """Raise UsageError if options are missing or do not go together."""
    if arguments.formula is None and arguments.crosstab is None:
        why = 'is for analyses: add --formula "outcome ~ terms" or --crosstab A,B'
        _refuse(arguments, OPTIONS, f"{why}, or remove it to fit a study's own models")
    if arguments.crosstab is not None:
        _refuse(arguments, ("formula",), "cannot be combined with --crosstab: give only one")
    own = "is for a study's own models, without --formula or --crosstab"
    _refuse(arguments, ("question", "contamination"), own)
    method = arguments.method or "nuts"
    if method not in SAMPLERS or SAMPLERS[method].tables_alone:
        raise UsageError(
            f"{arguments.method!r} is no method of an analysis: nuts and gaussian_approx are",
            code="options.unknown_method",
        )
    if arguments.crosstab is not None:
        _refuse(
            arguments,
            ("family", "prior", "poststratify", "weights"),
            "is for a --formula, not for --crosstab",
        )
    (_check_waves if arguments.wave is not None else _check_one)(arguments)


def _check_one(arguments: argparse.Namespace) -> None:
    """Raise UsageError if options of one table, or of one study's reports, do not go together."""
    if arguments.table is None:
        if arguments.study is None or arguments.reports is None:
            raise UsageError(
                "an analysis needs STUDY.json and REPORTS, or --table and --design",
                code="options.needs_study_or_table",
            )
        _refuse(arguments, ("design", "missing"), "is for a --table: a study already defines its reports")
        return
    if arguments.study is not None:
        raise UsageError(
            f"{arguments.study}: cannot be combined with --table. Give a study's reports or a table.",
            code="options.study_and_table",
        )
    if arguments.design is None:
        raise UsageError(
            "--table needs --design DESIGN.json, which defines its private columns",
            code="options.table_needs_design",
        )


def _check_waves(arguments: argparse.Namespace) -> None:
    """Raise UsageError if options of waves do not go together."""
    _refuse(arguments, ("table",), "is for a single table: give a survey's wave as --wave NAME=TABLE.csv")
    if arguments.study is not None:
        raise UsageError(
            f"{arguments.study}: give each wave's study and reports with --wave",
            code="options.study_with_wave",
        )


def _refuse(arguments: argparse.Namespace, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if getattr(arguments, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} {why}", code="options.combination_invalid")


def _crossed(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the columns to cross, and the column to cross by, if any."""
    names = [name.strip() for name in (arguments.crosstab or "").split(",") if name.strip()]
    return names, [arguments.by] if arguments.by is not None else []


def _crossed_by(arguments: argparse.Namespace) -> dict[str, Any]:
    return {**_common(arguments), "method": arguments.method or "nuts"}


def _common(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "seed": arguments.seed,
        "method": arguments.method,
        "draws": arguments.draws,
        "chains": CHAINS if arguments.chains is None else arguments.chains,
    }


def _options(arguments: argparse.Namespace, of_design: Any) -> dict[str, Any]:
    own = {"family": arguments.family, "priors": stated_priors(arguments.prior, of_design)}
    return {**own, **_common(arguments), "population": _population(arguments)}


def _population(arguments: argparse.Namespace) -> Any:
    from inference.analyses.population import Population
    from inference.analyses.survey import read_frame

    census = read_frame(arguments.poststratify) if arguments.poststratify is not None else None
    return Population(arguments.by, arguments.weights, census)


def stated_priors(given: list[str] | None, of_design: Any = None) -> Any:
    """Merge the command line's priors over the design's. Raises InputError for an unreadable prior."""
    if "flat" in (given or ()):
        if set(given or ()) != {"flat"}:
            raise UsageError(
                "--prior flat makes all priors flat: remove the other --prior options",
                code="options.flat_prior_with_others",
            )
        return "flat"
    found: Any = of_design
    for one in given or ():
        name, equals, value = one.rpartition("=")
        if equals and value == "flat":
            more: Any = {name: "flat"}
        else:
            more = _from_file(one)
        found = {**(found or {}), **more}
    return found


def _from_file(path: str) -> Any:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"--prior must be flat, NAME=flat or a file; {path}: {error.strerror}",
            code="prior.file_not_readable",
        ) from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}", code="prior.not_json") from None
    if not isinstance(document, dict):
        raise InputError(f'{path} must hold {{"NAME": {{"distribution": …}}}}', code="prior.file_not_object")
    return document
