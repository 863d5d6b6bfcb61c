"""Commands for the time before a study is published: plan and calibrate."""

from __future__ import annotations

import hashlib
import json
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError, UsageError
from ldpkit.cli.commands import command, out_option
from ldpkit.cli.fitting import SEED
from ldpkit.cli.output import progress, show, warn

if TYPE_CHECKING:
    from schemas import Study

PLAN = "plan.json"
# The options that each kind of plan takes.
OWN_MODELS = "a plan of the study's own models"
KINDS = {
    OWN_MODELS: ("question", "n", "epsilon", "margin", "parameter", "truth", "at_once"),
    "--formula": ("formula", "table", "design", "share", "power", "n", "margin", "parameter", "truth"),
    "--difference": ("difference", "power", "n", "epsilon", "truth"),
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
@out_option("a new folder for plan.json and pictures", "DIR")
@click.option("--question", metavar="ID", help="plan this question only")
@click.option("--n", type=Numbers(), help="how many devices, or people (default: 1000,10000,100000)")
@click.option("--epsilon", metavar="E,E,…", help="default: half, once and twice the study's")
@click.option("--margin", type=float, metavar="W", help="how many devices, or people, for ± W?")
@click.option("--parameter", metavar="NAME", help="of which parameter (default: the first)")
@click.option(
    "--truth", multiple=True, metavar="NAME=X,…", help="a guess of the truth (default: the prior's)"
)
@click.option("--at-once", is_flag=True, help="use a formula only, without simulation, if there is one")
@click.option("--formula", metavar="FORMULA", help='plan `survey --formula "ever ~ age + region"` instead')
@click.option("--table", metavar="TABLE.csv", help="with --formula: public columns of similar people")
@click.option("--design", metavar="DESIGN.json", help="with --formula: plan a survey on paper, not a study")
@click.option("--share", multiple=True, metavar="NAME=X,…", help="with --formula: guesses, job[worker]=0.3")
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
    """Predict how wide posteriors will be, by devices and epsilon, by simulation or a formula."""
    from inference.results.saving import new_folder
    from schemas.study import load_study

    kind = _kind(given)
    if study is None and kind != "--formula":
        raise UsageError("plan needs STUDY.json, or --formula with --design", code="plan.inputs_missing")
    document: Any = None if study is None else load_study(study)
    with new_folder(Path(out)) as folder:
        if kind == "--formula":
            lines = _plan_formula(document, folder, given)
        elif kind == "--difference":
            lines = _plan_difference(document, folder, given)
        else:
            lines = _plan_questions(document, folder, seed, given)
    show(lines)


def _kind(given: dict[str, Any]) -> str:
    """Return the kind of plan that was asked for. Raises UsageError for options of another kind."""
    kinds = [kind for kind in KINDS if given.get(kind[2:]) is not None]
    if len(kinds) > 1:
        raise UsageError(f"{' and '.join(kinds)} are two plans: ask for one only", code="plan.two_plans")
    kind = kinds[0] if kinds else OWN_MODELS
    for name, value in given.items():
        if value not in (None, False, ()) and name not in KINDS[kind]:
            takers = " or ".join(other for other, options in KINDS.items() if name in options)
            raise UsageError(
                f"--{name.replace('_', '-')} is not for {kind}: it is for {takers}",
                code="plan.option_of_other_plan",
            )
    return kind


def _write(folder: Path, study_digest: str, questions: dict[str, Any], **more: Any) -> None:
    from inference.results.saving import write_document

    write_document(folder / PLAN, {"study_digest": study_digest, **more, "questions": questions})


def _epsilons(given: dict[str, Any]) -> list[str]:
    return given["epsilon"].split(",") if given["epsilon"] else []


def _plan_questions(study: Study, folder: Path, seed: int, given: dict[str, Any]) -> list[str]:
    """Plan the study's own models, and draw each question's widths."""
    from inference.design.information import DEVICES, check_wishes
    from inference.design.pictures import plan_plot
    from inference.design.plan import check_information, plan_each, plannable
    from inference.design.plan_words import plan_lines
    from inference.design.truth import stated_values
    from inference.results.figures import to_png

    margin, parameter, simulated = given["margin"], given["parameter"], not given["at_once"]
    check_wishes(margin)
    if simulated:
        from inference.compiling import use_compile_cache
        from inference.design.calibration import empty_model

        use_compile_cache()
        asked = plannable(study, given["question"], empty_model)
    else:
        asked = plannable(study, given["question"], check_information)
    if (parameter or given["truth"]) and len(asked) > 1:
        raise InputError(
            f"--parameter and --truth are for one question: choose it from {', '.join(asked)} by --question",
            code="plan.question_needed",
        )
    truth, devices = stated_values(given["truth"]), given["n"] or DEVICES
    options = {"parameter": parameter, "simulated": simulated}
    plans = plan_each(study, asked, devices, _epsilons(given), truth, seed, progress(), **options)
    _write(folder, study.digest, {each.question: each.to_document() for each in plans}, seed=seed)
    for each in plans:
        (folder / f"{each.question}.png").write_bytes(to_png(plan_plot(each, margin)))
    return [line for each in plans for line in plan_lines(each, margin, parameter)]


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


def _plan_difference(study: Study, folder: Path, given: dict[str, Any]) -> list[str]:
    """Plan a difference of two groups, by a formula."""
    from inference.design.difference import plan_difference
    from inference.design.information import DEVICES
    from inference.design.plan_words import difference_lines
    from inference.design.truth import stated_values

    # 1. Find the parameter that differs: a share, of a label if there are several, or a number's mean.
    name, label, values = parse_difference(given["difference"])
    known = {question.id: question for question in study.questions}
    if name not in known:
        raise InputError(
            f"the study has no question {name!r}: it has {', '.join(known)}", code="study.unknown_question"
        )
    question = known[name]
    if label is None and question.ask == "choice":
        raise UsageError(
            f"{name} has several choices: add one, as in {name}[{question.choices[0]}]=0.1,0.2",
            code="plan.choice_needed",
        )
    own = {"choice": f"p[{label}]", "yes_no": "p"}.get(question.ask, "mean")
    # 2. Plan.
    difference = plan_difference(
        study,
        name,
        own if label is None else f"p[{label}]",
        values,
        given["n"] or DEVICES,
        _epsilons(given),
        stated_values(given["truth"]),
        power=given["power"],
    )
    _write(folder, study.digest, {name: difference.to_document()})
    return difference_lines(difference, given["power"])


def _plan_formula(study: Study | None, folder: Path, given: dict[str, Any]) -> list[str]:
    """Plan an analysis, by the information of its possible reports."""
    from inference.analyses.formula import parse
    from inference.analyses.survey import load_design, read_frame
    from inference.compiling import use_compile_cache
    from inference.design.formula_plan import plan_formula
    from inference.design.information import DEVICES
    from inference.design.plan_words import formula_lines
    from inference.design.possible_reports import possible_of_design, possible_of_study
    from inference.design.truth import stated_values
    from inference.results.saving import check_file_name

    # 1. Find all possible reports.
    formula, table = given["formula"], given["table"]
    shares, effects = stated_values(given["share"]), stated_values(given["truth"])
    if (study is None) == (given["design"] is None) or (study is None and table is None):
        raise UsageError(
            "--formula needs STUDY.json, or --design with --table TABLE.csv, whose public columns are as of "
            "those who will answer",
            code="plan.inputs_missing",
        )
    known = None if table is None else read_frame(table)
    if study is not None:
        possible, digest = possible_of_study(study, formula, known), study.digest
        priors, words = None, []
    else:
        design = load_design(given["design"])
        possible = possible_of_design(design, formula, known)
        digest = hashlib.sha256(json.dumps(design.document, sort_keys=True).encode()).hexdigest()
        priors, words = design.priors, design.in_words()
    # 2. Plan.
    outcome = parse(formula, possible.table.names).outcome
    check_file_name(outcome)
    use_compile_cache()
    analysis = plan_formula(
        possible,
        formula,
        given["n"] or DEVICES,
        digest=digest,
        shares=shares,
        effects=effects,
        priors=priors,
        width=given["margin"],
        power=given["power"],
        parameter=given["parameter"],
    )
    _write(folder, digest, {outcome: analysis.to_document()})
    return [*words, *formula_lines(analysis, given["margin"], given["power"])]


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
        calibrate_each,
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
        calibrations = calibrate_each(questions, studies, devices, seed, clips, progress())
        entries = {each.question: each.to_document() for each in calibrations}
        head = {"study_digest": document.digest, "seed": seed}
        write_document(folder / "calibration.json", {**head, "questions": entries})
        for each in calibrations:
            (folder / f"{each.question}.png").write_bytes(to_png(rank_plot(each)))
    lines = [line for each in calibrations for line in calibration_lines(each)]
    show(lines)
    return 0 if all(each.ok for each in calibrations) else EXIT_NOT_TRUSTED
