"""Commands for the time before a study is published: plan and calibrate."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError, UsageError
from ldpkit.cli.commands import command, out_option, study_argument
from ldpkit.cli.output import progress, show, warn
from ldpkit.cli.surveys import load_source
from schemas import Study

if TYPE_CHECKING:
    from inference.design.plan import Plan

PLAN = "plan.json"
# Simulations begin with this, so a plan is the same in each run.
SEED = 0
ABOVE_0 = click.FloatRange(0, min_open=True)
SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
# The options that only some kinds of plan take.
OWN_MODELS = "a plan of the study's own models"
KINDS = {
    OWN_MODELS: ("question", "epsilon", "margin"),
    "--formula": ("formula", "table", "power", "margin"),
    "--difference": ("difference", "epsilon", "power", "margin"),
}


def read_numbers(ctx: click.Context, parameter: click.Parameter, value: str | None) -> list[int]:
    """Return whole numbers, as in 1000,10000."""
    try:
        return [int(part) for part in value.split(",")] if value else []
    except ValueError:
        problem = f"must be whole numbers, as in 1000,10000, is {value}"
        raise click.BadParameter(problem, ctx, parameter) from None


@command("plan", "plan study.json --question hours --margin 0.5 --out plan")
@click.argument("document", metavar="DOCUMENT.json")
@out_option("a new folder for plan.json", "DIR")
@click.option("--question", metavar="ID", help="plan this question only")
@click.option(
    "--n",
    metavar="N,N,…",
    callback=read_numbers,
    help="how many devices, or people (default: 1000,10000,100000)",
)
@click.option("--epsilon", metavar="E,E,…", help="default: half, once and twice the study's")
@click.option("--margin", type=ABOVE_0, metavar="W", help="how many devices, or people, for ± W?")
@click.option(
    "--truth", multiple=True, metavar="NAME=X,…", help="a guess of the truth (default: the prior's)"
)
@click.option("--formula", metavar="FORMULA", help='plan `survey --formula "ever ~ age + region"` instead')
@click.option("--table", metavar="TABLE.csv", help="with --formula: public columns of similar people")
@click.option(
    "--difference",
    metavar="NAME=A,B",
    help="plan a difference of two groups instead: ever=0.2,0.3, job[teacher]=0.1,0.2 or hours=7,8",
)
@click.option("--power", type=SHARE, metavar="P", help="how many find the effects or the difference so often")
def plan(document: str, out: str, **given: Any) -> None:
    """Predict how wide posteriors will be, by devices and epsilon.

    DOCUMENT.json is a study, or with --formula and --table the design of a survey with dice.
    """
    from inference.design.information import DEVICES
    from inference.design.truth import stated_values
    from inference.results.saving import new_folder, write_document

    margin, power = given["margin"], given["power"]
    if margin is not None and not isfinite(margin):
        raise UsageError(f"--margin {margin} must be a number above 0", code="plan.margin_not_finite")
    kind = _kind(given)
    source = load_source(document)
    if given["table"] is None and hasattr(source, "in_words"):
        raise UsageError("the plan of a design needs --formula and --table", code="plan.inputs_missing")
    truth, devices = stated_values(given["truth"]), given["n"] or list(DEVICES)
    epsilons = given["epsilon"].split(",") if given["epsilon"] else []
    with new_folder(Path(out)) as folder:
        if kind == "--formula":
            from inference.design.formulas import plan_formula
            from summaries.people.codebook import read_table

            known = None if given["table"] is None else read_table(given["table"])
            plans = [plan_formula(source, given["formula"], known, devices, truth)]
        elif kind == "--difference":
            plans = [_plan_difference(source, devices, epsilons, truth, given["difference"])]
        else:
            plans = _plan_questions(source, devices, epsilons, truth, given["question"])
        if power is not None and not plans[0].effects:
            raise UsageError(
                "--power is of an effect: state it, such as --truth age=0.05", code="plan.power_needs_effect"
            )
        entries = {each.question: each.to_document() for each in plans}
        digest = getattr(source, "digest", "")
        write_document(folder / PLAN, {"study_digest": digest, "seed": SEED, "questions": entries})
    design = source.in_words() if hasattr(source, "in_words") else []
    show([*design, *(line for each in plans for line in each.lines(margin, power))])


def _kind(given: dict[str, Any]) -> str:
    """Return the kind of plan. Raises UsageError for options of another kind, and for impossible ones."""
    kinds = [kind for kind in KINDS if given.get(kind[2:]) is not None]
    kind = kinds[0] if kinds else OWN_MODELS
    for name in {name for options in KINDS.values() for name in options} - {*KINDS[kind]}:
        if given[name] is not None:
            takers = " or ".join(other for other, options in KINDS.items() if name in options)
            raise UsageError(
                f"--{name} is not for {kind}: it is for {takers}", code="plan.option_of_other_plan"
            )
    return kind


def _plan_questions(
    study: Study,
    devices: list[int],
    epsilons: list[str],
    truth: dict[str, float],
    question: str | None,
) -> list[Plan]:
    """Plan the study's own models."""
    from inference.design.plan import plan
    from inference.design.questions import check_plannable, plannable

    asked = plannable(study, question, check_plannable)
    if truth and len(asked) > 1:
        raise InputError(
            f"--truth is for one question: choose it from {', '.join(asked)} by --question",
            code="plan.question_needed",
        )
    return [plan(study, name, devices, epsilons, truth, SEED, progress()) for name in asked]


def _plan_difference(
    study: Study, devices: list[int], epsilons: list[str], truth: dict[str, float], text: str
) -> Plan:
    """Plan a difference of two groups: of a share, of a label if there are several, or of a number's mean."""
    from inference.design.plan import plan_difference

    named, _, stated = text.rpartition("=")
    name, bracket, label = named.strip().partition("[")
    try:
        first, second = (float(value) for value in stated.split(","))
        if not name or not (isfinite(first) and isfinite(second)):
            raise ValueError
    except ValueError:
        raise UsageError(
            f"--difference must be NAME=A,B, such as ever=0.2,0.3, not {text!r}",
            code="plan.difference_wrong_form",
        ) from None
    asks = {question.id: question.ask for question in study.questions}
    if asks.get(name) == "choice" and not bracket:
        raise UsageError(
            f"{name} has several choices: add one, as in {name}[{study.question(name).choices[0]}]=0.1,0.2",
            code="plan.choice_needed",
        )
    parameter = {"choice": f"p[{label.removesuffix(']')}]", "yes_no": "p"}.get(asks.get(name, ""), "mean")
    values = (first, second)
    return plan_difference(study, name, parameter, values, devices, epsilons, truth, SEED, progress())


@command("calibrate", "calibrate study.json --question hours --out calibration")
@study_argument
@out_option("a new folder for calibration.json", "DIR")
@click.option("--question", metavar="ID", help="calibrate this question only")
@click.option("--studies", type=int, default=100, metavar="N", help="simulated studies (default 100)")
@click.option("--n", "devices", type=int, default=10_000, metavar="N", help="devices in each (default 10000)")
@click.option("--device", "clips", is_flag=True, help="clip records as devices do, which the models ignore")
def calibrate(study: Study, out: str, question: str | None, studies: int, devices: int, clips: bool) -> int:
    """Simulate whether intervals contain the truth as often as they say."""
    from inference.compiling import use_compile_cache
    from inference.design.calibration import calibrate, check_simulation, empty_model
    from inference.design.questions import answers_of, plannable
    from inference.results.saving import new_folder, write_document

    if study.sample_one_question:
        devices, whole = answers_of(study, devices), devices
        warn(
            f"each device answers only 1 of {len(study.questions)} questions: {whole:,} devices are "
            f"simulated as {devices:,} answers to each"
        )
    questions = [study.question(name) for name in plannable(study, question, empty_model)]
    for asked in questions:
        check_simulation(asked, studies, devices, SEED)
    use_compile_cache()
    with new_folder(Path(out)) as folder:
        calibrations = [calibrate(asked, studies, devices, SEED, clips, progress()) for asked in questions]
        entries = {each.question: each.to_document() for each in calibrations}
        head = {"study_digest": study.digest, "seed": SEED}
        write_document(folder / "calibration.json", {**head, "questions": entries})
    show([line for each in calibrations for line in each.lines()])
    return 0 if all(each.ok for each in calibrations) else EXIT_NOT_TRUSTED
