"""The command survey: formulas and crossed tables, over devices' reports, dice surveys and waves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_client.documents.errors import InputError, UsageError
from ldpkit.cli.analysing import sampling_options, show_posteriors
from ldpkit.cli.commands import codebook_option, command, out_option
from ldpkit.cli.output import progress
from schemas.disk import STREAM, read_bytes

if TYPE_CHECKING:
    from inference.analyses.design_file import Design
    from inference.analyses.table import Table
    from inference.results.provenance import Word

# How the format of a design begins.
DESIGN = b'"ldpkit.design/'


def _refuse_design(_context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    """Raise UsageError for options that people know from R's survey: intervals would ignore the design."""
    if value is not None:
        raise UsageError(
            f"{parameter.opts[0]} is not supported: use R's survey package on the unbiased columns of "
            "`ldpkit export` (docs/surveys.md)",
            code="survey.no_design",
        )


@command("survey", 'survey study.json reports.ndjson --formula "ever ~ age + region" --out analysis')
@click.argument("document", metavar="[DOCUMENT.json", required=False)
@click.argument("data", metavar="DATA]", required=False)
@out_option("a new folder for posterior.json, draws, the report and its numbers (CSV)", "DIR")
@click.option("--formula", metavar="FORMULA", help='such as "ever ~ age + region + (1 | clinic)"')
@click.option("--crosstab", metavar="A,B", help="the joint table of private columns, instead of a formula")
@click.option(
    "--wave",
    "waves",
    multiple=True,
    metavar="NAME=DOCUMENT.json,DATA",
    help="a wave, instead of DOCUMENT.json and DATA; repeat for each; `wave` is a column",
)
@click.option("--family", metavar="NAME", help="the outcome's family (default: by its kind)")
@click.option(
    "--prior",
    multiple=True,
    metavar="PRIOR",
    help='flat, NAME=flat, or a JSON file {"NAME": {"distribution": …}}; repeat for more',
)
@click.option(
    "--missing",
    type=click.Choice(["error", "drop"]),
    help="what becomes of a table's rows with missing values (default: error)",
)
@codebook_option
@click.option("--by", metavar="COLUMN", help="also show shares within each level of a public column")
@click.option("--weights", metavar="COLUMN", help="how many people each row represents")
@click.option("--poststratify", metavar="CENSUS.csv", help="totals over its rows, `count` people each")
@click.option("--strata", hidden=True, expose_value=False, callback=_refuse_design)
@click.option("--cluster", hidden=True, expose_value=False, callback=_refuse_design)
@sampling_options
def survey(
    out: str, seed: int, method: str, draws: int, level: float, check: str | None, strict: bool, **given: Any
) -> int:
    """Fit a formula, or cross columns: regressions of private answers on public columns.

    DOCUMENT.json is a study, and DATA devices' reports on it; or the design of a survey with dice, and its
    table.
    """
    _refuse_combinations(given)
    from inference.analyses.analysing import analyse_table
    from inference.analyses.crossing import cross_table
    from inference.analyses.population import Population
    from inference.results.intervals import interval_of
    from inference.results.provenance import made_by
    from inference.results.report import save_report
    from inference.results.reproduction import compared, earlier_result
    from inference.results.saving import check_file_name, new_folder
    from summaries.people.codebook import read_census

    # 1. Read the names of columns.
    formula, by, census = given["formula"], given["by"], given["poststratify"]
    population = Population(by, given["weights"], None if census is None else read_census(census))
    crossed = [name.strip() for name in (given["crosstab"] or "").split(",") if name.strip()]
    outcomes = crossed if formula is None else [formula.split("~")[0].strip().strip("`")]
    for name in outcomes:
        check_file_name(name)
    # 2. Read and count the answers.
    sampling: dict[str, Any] = {"seed": seed, "method": method, "draws": draws}
    interval, tell = interval_of(level), progress()
    with new_folder(Path(out)) as folder:
        table, title, design = read_source(given, [*crossed, *population.columns()])
        priors = None if design is None else design.priors_of(table.private)
        made = made_by("survey", words_of_call(given, sampling, level))
        earlier = earlier_result(check, made)
        # 3. Fit, and write the folder.
        if formula is None:
            posterior = cross_table(table, crossed, by, priors=priors, progress=tell, **sampling)
        else:
            priors = stated_priors(given["prior"], priors)
            options = {"family": given["family"], "priors": priors, "population": population}
            posterior = analyse_table(table, formula, progress=tell, **options, **sampling)
        posteriors = {posterior.question: posterior}
        save_report(posteriors, folder, title=title, interval=interval, made=made)
        same, lines = compared(check, earlier, folder)
    lines = [*(design.in_words() if design else ()), *lines]
    return show_posteriors(posteriors, out, interval, lines, same, strict)


def _refuse_combinations(given: dict[str, Any]) -> None:
    """Raise UsageError if options are missing or do not go together."""
    if (given["formula"] is None) == (given["crosstab"] is None):
        raise UsageError('give --formula "outcome ~ terms", or --crosstab A,B', code="survey.what_to_fit")
    for name in ("family", "prior", "poststratify", "weights") if given["crosstab"] else ():
        if given[name]:
            raise UsageError(f"--{name} is for a --formula, not for --crosstab", code="survey.combination")
    if bool(given["document"]) == bool(given["waves"]) or bool(given["document"]) != bool(given["data"]):
        raise UsageError(
            "give a study and its reports, or a design and its table, or --wave for each wave",
            code="survey.what_to_read",
        )


def words_of_call(given: dict[str, Any], sampling: dict[str, Any], level: float) -> list[Word]:
    """Return the call's words for `made_by`, with paths of files."""
    from inference.results.provenance import words_of

    words: list[Word] = [[Path(given[name])] for name in ("document", "data") if given[name]]
    for name in ("codebook", "poststratify"):
        words += [[f"--{name}=", Path(given[name])]] if given[name] else []
    plain = ("formula", "crosstab", "family", "missing", "by", "weights")
    words += words_of(**sampling, level=level, **{name: given[name] for name in plain})
    for prior in given["prior"]:
        words.append(["--prior=", prior if prior.split("=")[-1] == "flat" else Path(prior)])
    for name, (document, data) in waves_of(given["waves"]).items():
        words.append([f"--wave={name}=", Path(document), ",", Path(data)])
    return words


def is_design(path: str) -> bool:
    """Return True for the design of a survey with dice, and False for a study."""
    return path != STREAM and DESIGN in read_bytes(path)


def load_source(path: str) -> Any:
    """Read a study, or the design of a survey with dice. Raises InputError."""
    if is_design(path):
        from inference.analyses.design_file import read_design

        return read_design(read_bytes(path))
    from schemas.study import load_study

    return load_study(path)


def read_source(given: dict[str, Any], also: Sequence[str]) -> tuple[Table, str, Design | None]:
    """Read what the options name: the counted answers, their title, and the design of a survey with dice.

    also: columns besides the formula's. Raises InputError.
    """
    from inference.analyses.study_formula import table_of_waves
    from inference.analyses.survey import load_survey
    from schemas.study import load_study
    from summaries.people.codebook import read_codebook

    formula, waves = given["formula"], waves_of(given["waves"])
    files = waves or {"": (given["document"], given["data"])}
    documents = list(dict.fromkeys(document for document, _ in files.values()))
    # 1. Tables of a survey with dice.
    if any(map(is_design, documents)):
        if len(documents) > 1:
            raise UsageError("waves of tables have one design: name the same in each", code="survey.designs")
        codebook = None if given["codebook"] is None else read_codebook(given["codebook"])
        tables = {name: data for name, (_, data) in files.items()}
        drop = given["missing"] == "drop"
        table, design = load_survey(tables, documents[0], formula, drop, also, codebook)
        return table, design.title, design
    # 2. Reports of devices.
    if given["missing"] or given["codebook"]:
        raise UsageError(
            "--missing and --codebook are for tables: a study defines its reports", code="survey.of_tables"
        )
    read = {name: (load_study(document), reports) for name, (document, reports) in files.items()}
    return table_of_waves(read, formula, also), next(iter(read.values()))[0].title, None


def waves_of(given: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return {name: (document, data)}. Raises UsageError for another form."""
    waves: dict[str, tuple[str, str]] = {}
    for wave in given:
        name, _, listed = wave.partition("=")
        document, _, data = (path.strip() for path in listed.partition(","))
        if not name or not document or not data:
            raise UsageError(f"--wave {wave}: must be NAME=DOCUMENT.json,DATA", code="survey.wave_form")
        if name in waves:
            raise UsageError(
                f"two waves are called {name}: give each a different name", code="survey.wave_name_taken"
            )
        waves[name] = document, data
    return waves


def stated_priors(given: Sequence[str], of_design: Any = None) -> Any:
    """Merge the command line's priors over the design's. Raises InputError for an unreadable prior."""
    if "flat" in given:
        if set(given) != {"flat"}:
            raise UsageError(
                "--prior flat makes all priors flat: remove the other --prior options",
                code="survey.flat_prior_with_others",
            )
        return "flat"
    priors = of_design
    for prior in given:
        name, _, value = prior.rpartition("=")
        priors = {**(priors or {}), **({name: "flat"} if name and value == "flat" else _priors_in(prior))}
    return priors


def _priors_in(path: str) -> dict[str, Any]:
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"))
        if isinstance(document, dict):
            return document
        why = 'it must hold {"NAME": {"distribution": …}}'
    except OSError as error:
        why = f"{error.strerror}"
    except ValueError as error:
        why = f"it is not JSON: {error}"
    raise InputError(f"--prior must be flat, NAME=flat or a file; {path}: {why}", code="survey.prior_file")
