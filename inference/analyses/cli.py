"""`ldpkit fit` with a formula: of device reports, or of a survey's table with its design."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from inference.samplers import SAMPLERS
from ldp_client.documents.errors import InputError
from ldp_client.files.studies import load_study

# What only an analysis takes: without a formula, a fit refuses it.
OPTIONS = ("table", "design", "formula", "family", "prior", "blanks")


def add_analysis(fit: argparse.ArgumentParser) -> None:
    """Add what an analysis takes to the parser of `ldpkit fit`."""
    own = fit.add_argument_group("analyses of private beside public columns")
    own.add_argument("--formula", metavar="FORMULA", help='such as "ever ~ age + region + (1 | clinic)"')
    own.add_argument("--table", metavar="TABLE.csv", help="of a survey, instead of a study's reports")
    own.add_argument("--design", metavar="DESIGN.json", help="what the table's private columns mean")
    own.add_argument("--family", metavar="NAME", help="of the outcome, where not the usual one is wanted")
    own.add_argument(
        "--prior",
        action="append",
        metavar="PRIOR",
        help='flat, NAME=flat, or a JSON file {"NAME": {"distribution": …}}; may be repeated',
    )
    own.add_argument("--blanks", metavar="HOW", help="rows with blanks: refuse (default) or leave-out")


def wants_analysis(arguments: argparse.Namespace) -> bool:
    """Whether a fit was called with anything that only an analysis takes."""
    return any(getattr(arguments, name) is not None for name in OPTIONS)


def run_analysis(arguments: argparse.Namespace, tell: Any) -> Any:
    """Fit a formula and write its folder. Returns the posterior. Raises InputError for what does not fit."""
    if arguments.formula is None:
        raise InputError('an analysis needs --formula "outcome ~ terms"')
    if arguments.method not in SAMPLERS or SAMPLERS[arguments.method].tables_alone:
        raise InputError(f"{arguments.method!r} is no method of an analysis: nuts and laplace are")
    if arguments.table is None:
        return _of_reports(arguments, tell)
    return _of_table(arguments, tell)


def _of_reports(arguments: argparse.Namespace, tell: Any) -> Any:
    if arguments.study is None or arguments.reports is None:
        raise InputError(
            "a formula needs STUDY.json and REPORTS, or --table TABLE.csv and --design DESIGN.json"
        )
    for name in ("design", "blanks"):
        if getattr(arguments, name) is not None:
            raise InputError(f"--{name} is for a --table: a study's document says what its reports mean")
    from inference.analyses.page import save_analysis
    from inference.analyses.reports import analyse
    from inference.results.folder import whole_folder
    from summaries.reading import load_evidence

    study = load_study(arguments.study)
    with whole_folder(Path(arguments.out), study=study) as folder:
        found = analyse(
            study,
            load_evidence(study, arguments.reports),  # type: ignore[arg-type]
            arguments.formula,
            progress=tell,
            **_options(arguments, None),
        )
        save_analysis(found, folder, study.title)
    return found


def _options(arguments: argparse.Namespace, of_design: Any) -> dict[str, Any]:
    return {
        "family": arguments.family,
        "priors": stated_priors(arguments.prior, of_design),
        "seed": arguments.seed,
        "method": arguments.method,
        "draws": arguments.draws,
    }


def _of_table(arguments: argparse.Namespace, tell: Any) -> Any:
    if arguments.study is not None:
        raise InputError(f"{arguments.study}: a study's reports and --table are two things; give one of them")
    if arguments.design is None:
        raise InputError("a table needs --design DESIGN.json, which says what its private columns mean")
    from inference.analyses.analysing import analyse_table
    from inference.analyses.page import check_file_name, save_analysis
    from inference.analyses.survey import load_survey
    from inference.results.folder import whole_folder

    table, design = load_survey(
        arguments.table, arguments.design, arguments.formula, arguments.blanks or "refuse"
    )
    for line in design.in_words():
        print(line)
    check_file_name(arguments.formula.split("~")[0].strip().strip("`"))
    options = _options(arguments, design.priors)
    with whole_folder(Path(arguments.out), study=table) as folder:
        found = analyse_table(table, arguments.formula, progress=tell, **options)
        save_analysis(found, folder, str(design.document.get("title", "")))
    return found


def stated_priors(given: list[str] | None, of_design: Any = None) -> Any:
    """Priors of the command line over those of a design. Raises InputError for one that cannot be read."""
    found: Any = of_design
    for one in given or ():
        if one == "flat":
            found = "flat"
            continue
        name, equals, value = one.rpartition("=")
        if equals and value == "flat":
            more: Any = {name: "flat"}
        else:
            more = _from_file(one)
        if found == "flat":
            raise InputError("--prior flat makes all priors flat: state no others beside it")
        found = {**(found or {}), **more}
    return found


def _from_file(path: str) -> Any:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--prior must be flat, NAME=flat or a file; {path}: {error.strerror}") from None
    except ValueError as error:
        raise InputError(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise InputError(f'{path} must hold {{"NAME": {{"distribution": …}}}}')
    return document
