"""`ldpkit plan --formula`: how wide an analysis's intervals will be, and how many people it needs."""

from __future__ import annotations

import argparse
import hashlib
import json
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_client.commands.output import show_written
from ldp_client.documents.errors import UsageError
from ldp_client.files.disk import load_study
from ldp_client.words.text import visible

if TYPE_CHECKING:
    from inference.design.formula_plan import FormulaPlan
    from inference.design.possible_reports import Possible

# Options for a formula only, and options that a formula does not take.
OWN = ("table", "design", "share", "power", "family", "prior")
OTHERS = ("question", "epsilon")


def add_formula(plan: argparse.ArgumentParser) -> None:
    """Add the options of a plan of a formula."""
    own = plan.add_argument_group("plans of an analysis, without simulation")
    own.add_argument("--formula", metavar="FORMULA", help='such as "ever ~ age + region"')
    own.add_argument("--table", metavar="TABLE.csv", help="public columns of similar people to plan for")
    own.add_argument("--design", metavar="DESIGN.json", help="plan a survey on paper, instead of a study")
    own.add_argument(
        "--share",
        action="append",
        metavar="NAME=X,…",
        help="guessed shares: ever=0.2, or job[worker]=0.3 (default: all alike); may be repeated",
    )
    own.add_argument(
        "--power", type=float, metavar="P", help="how many people find the effects of --truth this often?"
    )
    own.add_argument("--family", metavar="NAME", help="family of the outcome, as for `fit`")
    own.add_argument("--prior", action="append", metavar="PRIOR", help="as for `fit`; may be repeated")


def whole_numbers(text: str) -> list[int]:
    """The numbers of "1000,10000", for argparse."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be whole numbers, as in 1000,10000, is {text}") from None


def refuse_without_formula(arguments: argparse.Namespace) -> None:
    """Raise InputError for options that a plan of a study's own models does not take, or lacks."""
    for name in OWN:
        if getattr(arguments, name) is not None:
            raise UsageError(f"--{name} is for a plan of a --formula", code="plan.option_needs_formula")
    if arguments.study is None:
        raise UsageError(
            "plan needs STUDY.json, or --design, --table and --formula", code="plan.inputs_missing"
        )


def run_formula_plan(arguments: argparse.Namespace) -> int:
    """ldpkit plan [STUDY.json] --formula FORMULA [--n N,…] [--share …] [--truth …] --out DIR"""
    for name in OTHERS:
        if getattr(arguments, name) is not None:
            raise UsageError(
                f"--{name} is not for a --formula, which names what it is of",
                code="plan.option_not_with_formula",
            )
    if arguments.at_once:
        raise UsageError(
            "--at-once is of a study's own models: a --formula is planned without simulation",
            code="plan.at_once_with_formula",
        )
    from inference.analyses.formula import parse
    from inference.analyses.report_page import check_file_name
    from inference.compiling import use_compile_cache
    from inference.design.folders import save_formula_plan
    from inference.design.formula_plan import PEOPLE, plan_formula
    from inference.design.truth import stated_values
    from inference.results.saving import new_folder

    shares, effects = stated_values(arguments.share), stated_values(arguments.truth)
    possible, digest, priors, words = _possible(arguments)
    outcome = parse(arguments.formula, possible.table.names).outcome
    check_file_name(outcome)
    use_compile_cache()
    with new_folder(Path(arguments.out)) as folder:
        found = plan_formula(
            possible,
            arguments.formula,
            arguments.n or PEOPLE,
            digest=digest,
            shares=shares,
            effects=effects,
            priors=priors,
            family=arguments.family,
            width=arguments.margin,
            power=arguments.power,
            parameter=arguments.parameter,
        )
        save_formula_plan(found, outcome, folder)
    lines = [*words, *formula_lines(found, arguments.margin, arguments.power)]
    show_written(arguments, lines, "plan.json")
    return 0


def _possible(arguments: argparse.Namespace) -> tuple[Possible, str, Any, tuple[str, ...]]:
    """Return all possible reports, the digest of the document, its priors, and the design as read."""
    from inference.analyses.cli import stated_priors
    from inference.analyses.survey import load_design, read_frame
    from inference.design.possible_reports import possible_of_design, possible_of_study

    known = read_frame(arguments.table) if arguments.table is not None else None
    if arguments.design is None:
        if arguments.study is None:
            raise UsageError(
                "plan needs STUDY.json, or --design, --table and --formula",
                code="plan.study_or_design_needed",
            )
        study = load_study(arguments.study)
        possible = possible_of_study(study, arguments.formula, known)
        return possible, study.digest, stated_priors(arguments.prior), ()
    if arguments.study is not None:
        raise UsageError(
            f"{arguments.study}: a study already defines its reports; give it or --design",
            code="plan.design_with_study",
        )
    if known is None:
        raise UsageError(
            "--design needs --table TABLE.csv, whose public columns are as of those who will answer",
            code="plan.design_needs_table",
        )
    design = load_design(arguments.design)
    possible = possible_of_design(design, arguments.formula, known)
    digest = hashlib.sha256(json.dumps(design.document, sort_keys=True).encode()).hexdigest()
    return possible, digest, stated_priors(arguments.prior, design.priors), tuple(design.in_words())


def formula_lines(found: FormulaPlan, width: float | None, power: float | None) -> list[str]:
    """Return the table of a plan, its assumptions, and the numbers of people needed."""
    column = max([24, *(len(visible(name)) + 2 for name in found.half_widths)])
    lines = [f"{found.formula}: expected ± (half of the 90 % interval)"]
    heads = "".join(f"{n:>12,}{'*' if found.rough[n] else ' '}" for n in found.people)
    lines.append(f"  {'':{column}}{heads} people")
    for name, widths in found.half_widths.items():
        numbers = "".join(f"{half:>12.3g} " for half in widths)
        lines.append(f"  {visible(name):{column}}{numbers}")
        if name in found.odds:
            factors = "".join(f"{exp(half):>12.4g} " for half in widths)
            lines.append(f"  {'  odds ratio × or ÷':{column}}{factors}")
    for name, chances in found.power.items():
        powers = "".join(f"{chance:>12.0%} " for chance in chances)
        lines.append(f"  {f'power of {visible(name)} = {found.truth[name]:g}':{column}}{powers}")
    for name, needed in found.needed.items():
        lines.append(f"  ± {width:g} of {visible(name)}: {_people(needed, found)}")
    for name, needed in found.needed_for_power.items():
        words = _people(needed, found)
        lines.append(f"  {visible(name)} = {found.truth[name]:g} found with power {power:g}: {words}")
    if any(found.rough.values()):
        lines.append("  * so few that posteriors are not normal: fits will be wider than this, up to twice")
    return [*lines, *(f"  assumed: {visible(line)}" for line in found.assumed)]


def _people(needed: int | None, found: FormulaPlan) -> str:
    from inference.design.sample_size import rounded_up

    if needed is None:
        return "more than a thousand million people"
    if not needed:
        return "the prior alone is as narrow"
    return f"about {rounded_up(needed):,} people{'*' if found.rough[needed] else ''}"
