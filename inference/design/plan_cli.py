"""`ldpkit plan`: widths of a study's own models, of a formula, of a difference, or epsilons for a set."""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_client.commands.output import add_output, progress_of, show_written
from ldp_client.commands.parsers import add_command
from ldp_client.commands.shuffled_privacy import OWN as OF_REPORTS
from ldp_client.commands.shuffled_privacy import add_set, stated
from ldp_client.documents.errors import InputError, UsageError
from schemas.study import load_study

if TYPE_CHECKING:
    from inference.design.possible_reports import Possible
    from schemas import Study

SAME_NUMBERS = "the same seed gives the same numbers (default 0)"
PLAN, OF_SET = "plan.json", "set-study.json"
# The option that asks for each kind of plan, and the further options that it takes.
OWN_MODELS = ("question", "n", "epsilon", "margin", "parameter", "truth", "at_once")
KINDS = {
    "": OWN_MODELS,
    "formula": (
        "table", "design", "share", "power", "family", "prior", "n", "margin", "parameter", "truth",
    ),
    "difference": ("groups", "power", "n", "epsilon", "truth"),
    "shuffled": ("n", *OF_REPORTS),
}  # fmt: skip


def add_plan(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register plan."""
    text = "simulate how wide posteriors will be, by devices and epsilon"
    example = "plan study.json --question hours --margin 0.5 --out plan"
    plan = add_command(subparsers, "plan", text, example)
    plan.add_argument("study", metavar="STUDY.json", nargs="?")
    plan.add_argument("--question", metavar="ID", help="default: every question")
    plan.add_argument("--out", required=True, metavar="DIR")
    plan.add_argument("--seed", type=int, default=0, metavar="N", help=SAME_NUMBERS)
    plan.add_argument(
        "--n",
        type=whole_numbers,
        metavar="N,N,…",
        help="how many devices, with --formula people (default: 1000,10000,100000)",
    )
    plan.add_argument("--epsilon", metavar="E,E,…", help="default: half, once and twice the study's")
    plan.add_argument(
        "--margin", type=float, metavar="W", help="how many devices (with --formula people) for ± W?"
    )
    plan.add_argument("--parameter", metavar="NAME", help="of which parameter (default: the first)")
    plan.add_argument(
        "--truth",
        action="append",
        metavar="NAME=X,…",
        help="a guess of the truth (default: drawn from the prior); may be repeated",
    )
    plan.add_argument(
        "--at-once", action="store_true", help="use formulas only, without simulation, if there are any"
    )
    formula = plan.add_argument_group("plans of an analysis, without simulation")
    formula.add_argument("--formula", metavar="FORMULA", help='such as "ever ~ age + region"')
    formula.add_argument("--table", metavar="TABLE.csv", help="public columns of similar people to plan for")
    formula.add_argument("--design", metavar="DESIGN.json", help="plan a survey on paper, instead of a study")
    formula.add_argument(
        "--share",
        action="append",
        metavar="NAME=X,…",
        help="guessed shares: ever=0.2, or job[worker]=0.3 (default: all alike); may be repeated",
    )
    formula.add_argument(
        "--power", type=float, metavar="P", help="how many people find the effects of --truth this often?"
    )
    formula.add_argument("--family", metavar="NAME", help="family of the outcome, as for `fit`")
    formula.add_argument("--prior", action="append", metavar="PRIOR", help="as for `fit`; may be repeated")
    quick = plan.add_argument_group("by formulas, without simulation")
    quick.add_argument(
        "--difference",
        metavar="NAME=A,B",
        help="power of a difference between two groups: ever=0.2,0.3, job[teacher]=0.1,0.2 or hours=7,8; "
        "with --power how many devices it takes",
    )
    quick.add_argument("--groups", type=float, metavar="SHARE", help="share of the first group (default 0.5)")
    quick.add_argument(
        "--shuffled",
        metavar="E",
        help="find the devices' epsilon for this epsilon towards an observer of the set of reports only, "
        "with --n reports; write that study into the folder",
    )
    add_set(quick)
    add_output(plan)
    plan.set_defaults(run=run_plan)


def whole_numbers(text: str) -> list[int]:
    """The numbers of "1000,10000", for argparse."""
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be whole numbers, as in 1000,10000, is {text}") from None


def run_plan(arguments: argparse.Namespace) -> int:
    """ldpkit plan [STUDY.json] [--margin W] [--n N,…] [--epsilon E,…] [--truth NAME=X,…] --out DIR"""
    run = {"": _own_models, "formula": _formula, "difference": _difference, "shuffled": _shuffled}
    kind = _kind(arguments)
    study = load_study(arguments.study) if arguments.study is not None else None
    from inference.results.saving import new_folder

    with new_folder(Path(arguments.out)) as folder:
        lines = run[kind](study, arguments, folder)
    show_written(arguments, lines, PLAN)
    return 0


def _kind(arguments: argparse.Namespace) -> str:
    """Return the kind of plan that was asked for. Raises UsageError for options of another kind."""
    asked = [kind for kind in KINDS if kind and getattr(arguments, kind) is not None]
    if len(asked) > 1:
        named = " and ".join(f"--{kind}" for kind in asked)
        raise UsageError(f"{named} are two plans: ask for one only", code="plan.two_plans")
    kind = asked[0] if asked else ""
    for name in dict.fromkeys(name for options in KINDS.values() for name in options):
        if name not in KINDS[kind] and getattr(arguments, name) not in (None, False):
            option = f"--{name.replace('_', '-')}"
            takers = " or ".join(
                f"--{one}" if one else "the study's own models" for one in KINDS if name in KINDS[one]
            )
            what = f"--{kind}" if kind else "a plan of the study's own models"
            raise UsageError(
                f"{option} is not for {what}: it is for {takers}", code="plan.option_of_other_plan"
            )
    if arguments.study is None and kind != "formula":
        raise UsageError(
            "plan needs STUDY.json, or --design, --table and --formula", code="plan.inputs_missing"
        )
    return kind


def _write(folder: Path, study_digest: str, questions: dict[str, Any], **more: Any) -> None:
    from inference.results.saving import write_document

    write_document(folder / PLAN, {"study_digest": study_digest, **more, "questions": questions})


def _epsilons(arguments: argparse.Namespace) -> list[str]:
    return arguments.epsilon.split(",") if arguments.epsilon else []


def _own_models(study: Study | None, arguments: argparse.Namespace, folder: Path) -> list[str]:
    assert study is not None
    from inference.compiling import use_compile_cache
    from inference.design.calibration import questions_to_simulate
    from inference.design.plan import DEVICES, plan_each, questions_to_plan
    from inference.design.plan_words import plan_lines
    from inference.design.sample_size import check_wishes
    from inference.design.truth import stated_values

    asked = questions_to_simulate(study, arguments.question)
    check_wishes(arguments.margin)
    if (arguments.parameter or arguments.truth) and len(asked) > 1:
        raise InputError(
            f"--parameter and --truth are for one question: choose it from {', '.join(asked)} by --question",
            code="plan.question_needed",
        )
    truth = stated_values(arguments.truth)
    devices = sorted(set(arguments.n or DEVICES))
    for name in asked:
        questions_to_plan(study, name, devices, _epsilons(arguments), arguments.seed)
    use_compile_cache()
    options = {"parameter": arguments.parameter, "simulated": not arguments.at_once}
    progress = progress_of(arguments)
    plans = plan_each(
        study, asked, devices, _epsilons(arguments), truth, arguments.seed, progress=progress, **options
    )
    lines = [line for one in plans for line in plan_lines(one, arguments.margin, arguments.parameter)]
    _write(folder, study.digest, {one.question: one.to_document() for one in plans}, seed=arguments.seed)
    from inference.design.pictures import plan_plot
    from inference.results.figures import to_png

    for one in plans:
        (folder / f"{one.question}.png").write_bytes(to_png(plan_plot(one, arguments.margin)))
    return lines


def parse_difference(text: str) -> tuple[str, str | None, tuple[float, float]]:
    """Question, the label in brackets or None, and two values. Raises UsageError."""
    name, equals, values = text.rpartition("=")
    try:
        one, other = (float(value) for value in values.split(","))
    except ValueError:
        equals = ""
    if not equals or not name or not (isfinite(one) and isfinite(other)):
        raise UsageError(
            f"--difference must be NAME=A,B, such as ever=0.2,0.3, not {text!r}",
            code="plan.difference_wrong_form",
        )
    question, bracket, label = name.strip().partition("[")
    return question, label.removesuffix("]") if bracket else None, (one, other)


def _difference(study: Study | None, arguments: argparse.Namespace, folder: Path) -> list[str]:
    assert study is not None
    from inference.design.difference import plan_difference
    from inference.design.plan import DEVICES
    from inference.design.plan_words import difference_lines
    from inference.design.truth import stated_values

    name, label, values = parse_difference(arguments.difference)
    found = plan_difference(
        study,
        name,
        _parameter(study, name, label),
        values,
        arguments.n or DEVICES,
        _epsilons(arguments),
        stated_values(arguments.truth),
        share=0.5 if arguments.groups is None else arguments.groups,
        power=arguments.power,
        seed=arguments.seed,
    )
    _write(folder, study.digest, {name: found.to_document()})
    return difference_lines(found, arguments.power)


def _parameter(study: Any, name: str, label: str | None) -> str:
    """Return the parameter that differs: a share, of a label if there are several, or a number's mean."""
    if not any(question.id == name for question in study.questions):
        known = ", ".join(question.id for question in study.questions)
        raise InputError(f"the study has no question {name!r}: it has {known}", code="study.unknown_question")
    question = study.question(name)
    if label is not None:
        return f"p[{label}]"
    if question.ask == "choice":
        raise UsageError(
            f"{name} has several choices: add one, as in {name}[{question.choices[0]}]=0.1,0.2",
            code="plan.choice_needed",
        )
    return "p" if question.ask == "yes_no" else "mean"


def _shuffled(study: Study | None, arguments: argparse.Namespace, folder: Path) -> list[str]:
    assert study is not None
    from inference.design.device_epsilon import plan_shuffled
    from inference.design.plan_words import set_lines
    from inference.results.saving import write_document

    if len(arguments.n or ()) != 1:
        raise UsageError(
            "--shuffled is for one number of --n, whose reports are the set",
            code="plan.set_needs_one_number",
        )
    found = plan_shuffled(study, arguments.shuffled, arguments.n[0], **stated(arguments))
    entries = {name: {"epsilon": epsilon} for name, epsilon in found.epsilons.items()}
    _write(folder, study.digest, entries, shuffled_privacy=asdict(found.found))
    write_document(folder / OF_SET, found.document)
    return [*set_lines(study, found), f"{Path(arguments.out) / OF_SET}: this study with these epsilons"]


def _formula(study: Study | None, arguments: argparse.Namespace, folder: Path) -> list[str]:
    from inference.analyses.formula import parse
    from inference.analyses.report_page import check_file_name
    from inference.compiling import use_compile_cache
    from inference.design.formula_plan import PEOPLE, plan_formula
    from inference.design.plan_words import formula_lines
    from inference.design.truth import stated_values

    shares, effects = stated_values(arguments.share), stated_values(arguments.truth)
    possible, digest, priors, words = _possible(study, arguments)
    outcome = parse(arguments.formula, possible.table.names).outcome
    check_file_name(outcome)
    use_compile_cache()
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
    _write(folder, digest, {outcome: found.to_document()})
    return [*words, *formula_lines(found, arguments.margin, arguments.power)]


def _possible(
    study: Study | None, arguments: argparse.Namespace
) -> tuple[Possible, str, Any, tuple[str, ...]]:
    """Return all possible reports, the digest of the document, its priors, and the design as read."""
    from inference.analyses.cli import stated_priors
    from inference.analyses.survey import load_design, read_frame
    from inference.design.possible_reports import possible_of_design, possible_of_study

    known = read_frame(arguments.table) if arguments.table is not None else None
    if arguments.design is None:
        if study is None:
            raise UsageError(
                "plan needs STUDY.json, or --design, --table and --formula",
                code="plan.inputs_missing",
            )
        possible = possible_of_study(study, arguments.formula, known)
        return possible, study.digest, stated_priors(arguments.prior), ()
    if study is not None:
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
