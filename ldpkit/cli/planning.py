"""Commands for the time before a study is published: plan and calibrate."""

from __future__ import annotations

from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError, UsageError
from ldpkit.cli.commands import codebook_option, command, out_option
from ldpkit.cli.fitting import SEED
from ldpkit.cli.output import progress, show, warn

if TYPE_CHECKING:
    from inference.design.plan import Plan
    from schemas import Study

PLAN = "plan.json"
# The options that only some kinds of plan take.
OWN_MODELS = "a plan of the study's own models"
KINDS = {
    OWN_MODELS: ("question", "epsilon", "parameter", "margin"),
    "--formula": ("formula", "table", "codebook", "design", "power", "margin"),
    "--difference": ("difference", "epsilon", "power", "margin"),
}


class Numbers(click.ParamType[list[int]]):
    """Whole numbers, as in 1000,10000."""

    name = "N,N,…"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """Read whole numbers."""
        try:
            return value if isinstance(value, list) else [int(part) for part in value.split(",")]
        except ValueError:
            self.fail(f"must be whole numbers, as in 1000,10000, is {value}", param, ctx)


@command("plan", "plan study.json --question hours --margin 0.5 --out plan")
@click.argument("study", metavar="[STUDY.json]", required=False)
@out_option("a new folder for plan.json", "DIR")
@click.option("--question", metavar="ID", help="plan this question only")
@click.option("--n", type=Numbers(), help="how many devices, or people (default: 1000,10000,100000)")
@click.option("--epsilon", metavar="E,E,…", help="default: half, once and twice the study's")
@click.option("--margin", type=float, metavar="W", help="how many devices, or people, for ± W?")
@click.option("--parameter", metavar="NAME", help="of which parameter (default: the first)")
@click.option(
    "--truth", multiple=True, metavar="NAME=X,…", help="a guess of the truth (default: the prior's)"
)
@click.option("--formula", metavar="FORMULA", help='plan `survey --formula "ever ~ age + region"` instead')
@click.option("--table", metavar="TABLE.csv", help="with --formula: public columns of similar people")
@codebook_option
@click.option("--design", metavar="DESIGN.json", help="with --formula: plan a survey on paper, not a study")
@click.option(
    "--difference",
    metavar="NAME=A,B",
    help="plan a difference of two groups instead: ever=0.2,0.3, job[teacher]=0.1,0.2 or hours=7,8",
)
@click.option(
    "--power", type=float, metavar="P", help="how many find the effects or the difference so often?"
)
@SEED
def plan(study: str | None, out: str, seed: int, **given: Any) -> None:
    """Predict how wide posteriors will be, by devices and epsilon."""
    from inference.design.information import DEVICES
    from inference.design.plan_words import plan_lines
    from inference.design.truth import stated_values
    from inference.results.saving import new_folder, write_document
    from schemas.study import load_study

    kind = _kind(study, given)
    document: Any = None if study is None else load_study(study)
    margin, power = given["margin"], given["power"]
    truth, devices = stated_values(given["truth"]), given["n"] or list(DEVICES)
    epsilons = given["epsilon"].split(",") if given["epsilon"] else []
    with new_folder(Path(out)) as folder:
        if kind == "--formula":
            plans, lines = _plan_formula(document, devices, truth, given)
        elif kind == "--difference":
            plans, lines = [_plan_difference(document, devices, epsilons, truth, given["difference"])], []
        else:
            plans, lines = _plan_questions(document, devices, epsilons, truth, seed, given), []
        if power is not None and not plans[0].effects:
            raise UsageError(
                "--power is of an effect: state it, such as --truth age=0.05", code="plan.power_needs_effect"
            )
        entries = {each.question: each.to_document() for each in plans}
        digest = "" if document is None else document.digest
        write_document(folder / PLAN, {"study_digest": digest, "seed": seed, "questions": entries})
    show([*lines, *(line for each in plans for line in plan_lines(each, margin, power, given["parameter"]))])


def _kind(study: str | None, given: dict[str, Any]) -> str:
    """Return the kind of plan. Raises UsageError for options of another kind, and for impossible ones."""
    kinds = [kind for kind in KINDS if given.get(kind[2:]) is not None]
    if len(kinds) > 1:
        raise UsageError(f"{' and '.join(kinds)} are two plans: ask for one only", code="plan.two_plans")
    kind = kinds[0] if kinds else OWN_MODELS
    for name in {name for options in KINDS.values() for name in options} - {*KINDS[kind]}:
        if given[name] is not None:
            takers = " or ".join(other for other, options in KINDS.items() if name in options)
            raise UsageError(
                f"--{name} is not for {kind}: it is for {takers}", code="plan.option_of_other_plan"
            )
    table, design = given["table"], given["design"]
    if (study is None) == (design is None) or (study is None and table is None):
        raise UsageError(
            "plan needs STUDY.json, or --formula with --design and --table TABLE.csv",
            code="plan.inputs_missing",
        )
    if given["margin"] is not None and not 0 < given["margin"] < inf:
        raise UsageError("--margin must be a number above 0", code="plan.margin_not_positive")
    if given["power"] is not None and not 0 < given["power"] < 1:
        raise UsageError("--power must be a probability, such as 0.8", code="plan.power_not_probability")
    return kind


def _plan_questions(
    study: Study,
    devices: list[int],
    epsilons: list[str],
    truth: dict[str, float],
    seed: int,
    given: dict[str, Any],
) -> list[Plan]:
    """Plan the study's own models."""
    from inference.design.plan import check_plannable, plan, plannable

    asked = plannable(study, given["question"], check_plannable)
    if (given["parameter"] or truth) and len(asked) > 1:
        raise InputError(
            f"--parameter and --truth are for one question: choose it from {', '.join(asked)} by --question",
            code="plan.question_needed",
        )
    parameter = given["parameter"]
    return [
        plan(study, name, devices, epsilons, truth, seed, progress(), parameter=parameter) for name in asked
    ]


def parse_difference(text: str) -> tuple[str, str | None, tuple[float, float]]:
    """Question, the label in brackets or None, and two values. Raises UsageError."""
    name, _, values = text.rpartition("=")
    question, bracket, label = name.strip().partition("[")
    try:
        first, second = (float(value) for value in values.split(","))
        if not question or not (isfinite(first) and isfinite(second)):
            raise ValueError
    except ValueError:
        raise UsageError(
            f"--difference must be NAME=A,B, such as ever=0.2,0.3, not {text!r}",
            code="plan.difference_wrong_form",
        ) from None
    return question, label.removesuffix("]") if bracket else None, (first, second)


def _plan_difference(
    study: Study, devices: list[int], epsilons: list[str], truth: dict[str, float], text: str
) -> Plan:
    """Plan a difference of two groups: of a share, of a label if there are several, or of a number's mean."""
    from inference.design.plan import plan_difference

    name, label, values = parse_difference(text)
    asks = {question.id: question.ask for question in study.questions}
    if asks.get(name) == "choice" and label is None:
        raise UsageError(
            f"{name} has several choices: add one, as in {name}[{study.question(name).choices[0]}]=0.1,0.2",
            code="plan.choice_needed",
        )
    parameter = {"choice": f"p[{label}]", "yes_no": "p"}.get(asks.get(name, ""), "mean")
    return plan_difference(study, name, parameter, values, devices, epsilons, truth)


def _plan_formula(
    study: Study | None, devices: list[int], truth: dict[str, float], given: dict[str, Any]
) -> tuple[list[Plan], list[str]]:
    """Plan an analysis. Return the plan, and the design in words."""
    from inference.analyses.survey import load_design
    from inference.design.formulas import plan_formula
    from summaries.people.codebook import read_codebook, read_table

    codebook = None if given["codebook"] is None else read_codebook(given["codebook"])
    known = None if given["table"] is None else read_table(given["table"], codebook)
    if study is not None:
        return [plan_formula(study, given["formula"], known, devices, truth)], []
    design = load_design(given["design"])
    return [plan_formula(design, given["formula"], known, devices, truth)], design.in_words()


@command("calibrate", "calibrate study.json --question hours --out calibration")
@click.argument("study", metavar="STUDY.json")
@out_option("a new folder for calibration.json and pictures", "DIR")
@click.option("--question", metavar="ID", help="calibrate this question only")
@click.option("--studies", type=int, metavar="N", help="simulated studies (default 100)")
@click.option("--n", "devices", type=int, metavar="N", help="devices in each (default 10000)")
@click.option("--device", "clips", is_flag=True, help="clip records as devices do, which the models ignore")
@SEED
def calibrate(
    study: str,
    out: str,
    question: str | None,
    studies: int | None,
    devices: int | None,
    clips: bool,
    seed: int,
) -> int:
    """Simulate whether intervals contain the truth as often as they say."""
    from schemas.study import load_study

    document = load_study(study)
    from inference.compiling import use_compile_cache
    from inference.design.calibration import (
        DEVICES,
        STUDIES,
        calibrate,
        check_simulation,
        empty_model,
    )
    from inference.design.pictures import rank_plot
    from inference.design.plan import answers_of, plannable
    from inference.design.plan_words import calibration_lines
    from inference.results.figures import to_png
    from inference.results.saving import new_folder, write_document

    studies, devices = STUDIES if studies is None else studies, DEVICES if devices is None else devices
    if document.sample_one_question:
        devices, whole = answers_of(document, devices), devices
        warn(
            f"each device answers only 1 of {len(document.questions)} questions: {whole:,} devices are "
            f"simulated as {devices:,} answers to each"
        )
    asked = plannable(document, question, empty_model)
    for name in asked:
        check_simulation(document.question(name), studies, devices, seed)
    use_compile_cache()
    questions = [document.question(name) for name in asked]
    with new_folder(Path(out)) as folder:
        calibrations = [calibrate(one, studies, devices, seed, clips, progress()) for one in questions]
        entries = {each.question: each.to_document() for each in calibrations}
        head = {"study_digest": document.digest, "seed": seed}
        write_document(folder / "calibration.json", {**head, "questions": entries})
        for each in calibrations:
            (folder / f"{each.question}.png").write_bytes(to_png(rank_plot(each)))
    lines = [line for each in calibrations for line in calibration_lines(each)]
    show(lines)
    return 0 if all(each.ok for each in calibrations) else EXIT_NOT_TRUSTED
