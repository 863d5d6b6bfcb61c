"""`ldpkit plan --difference` and `--shuffled`: plans without simulation.

Power of two groups; the budgets that a wish towards the set of reports allows.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ldp_client.commands.output import show_written
from ldp_client.commands.shuffled_privacy import OWN as OF_REPORTS
from ldp_client.commands.shuffled_privacy import add_set, stated
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.files.disk import load_study
from ldp_client.shuffling.explain import lines_of
from ldp_client.words.text import visible

if TYPE_CHECKING:
    from inference.design.device_epsilon import DeviceEpsilon
    from inference.design.difference import Difference
    from schemas import Study

# The other options of a plan that each takes.
OF_A_DIFFERENCE = ("groups", "power", "n", "epsilon", "truth")
OF_A_SET = ("n", *OF_REPORTS)
ALL = (
    "question", "n", "epsilon", "margin", "parameter", "truth", "table", "design", "share",
    "power", "family", "prior", "groups", "at_once", "formula", *OF_REPORTS,
)  # fmt: skip
PLANS = ("difference", "shuffled")


def add_quick(plan: argparse.ArgumentParser) -> None:
    """Add the options of both."""
    own = plan.add_argument_group("by formulas, without simulation")
    own.add_argument(
        "--difference",
        metavar="NAME=A,B",
        help="power of a difference between two groups: ever=0.2,0.3, job[teacher]=0.1,0.2 or hours=7,8; "
        "with --power how many devices it takes",
    )
    own.add_argument("--groups", type=float, metavar="SHARE", help="share of the first group (default 0.5)")
    own.add_argument(
        "--shuffled",
        metavar="E",
        help="find the devices' epsilon for this epsilon towards an observer of the set of reports only, "
        "with --n reports; write that study into the folder",
    )
    add_set(own)


def run_quick(arguments: argparse.Namespace) -> int | None:
    """Run the requested one of the two plans; None if neither was requested."""
    asked = [name for name in PLANS if getattr(arguments, name) is not None]
    if len(asked) > 1:
        named = " and ".join(f"--{name.replace('_', '-')}" for name in asked)
        raise UsageError(f"{named} are two plans: ask for one only", code="plan.two_plans")
    if arguments.difference is not None:
        _refuse_others(arguments, "--difference", OF_A_DIFFERENCE)
        return _run_difference(arguments)
    if arguments.shuffled is not None:
        _refuse_others(arguments, "--shuffled", OF_A_SET)
        return _run_shuffled(arguments)
    if arguments.groups is not None:
        raise UsageError("--groups is for a --difference", code="plan.groups_need_difference")
    for name in OF_REPORTS:
        if getattr(arguments, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} is for --shuffled", code="plan.option_of_set")
    return None


def _refuse_others(arguments: argparse.Namespace, what: str, taken: tuple[str, ...]) -> None:
    if arguments.study is None:
        raise UsageError(f"{what} needs STUDY.json", code="plan.study_missing")
    for name in ALL:
        if name not in taken and getattr(arguments, name) not in (None, False):
            raise UsageError(
                f"--{name.replace('_', '-')} is not for {what}", code="plan.option_of_other_plan"
            )


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


def _run_difference(arguments: argparse.Namespace) -> int:
    from inference.design.difference import plan_difference
    from inference.design.plan import DEVICES
    from inference.design.truth import stated_values
    from inference.results.saving import new_folder

    study = load_study(arguments.study)
    name, label, values = parse_difference(arguments.difference)
    with new_folder(Path(arguments.out)) as folder:
        found = plan_difference(
            study,
            name,
            _parameter(study, name, label),
            values,
            arguments.n or DEVICES,
            arguments.epsilon.split(",") if arguments.epsilon else [],
            stated_values(arguments.truth),
            share=0.5 if arguments.groups is None else arguments.groups,
            power=arguments.power,
            seed=arguments.seed,
        )
        _write(folder, {"study_digest": study.digest, "questions": {name: found.to_document()}})
    show_written(arguments, difference_lines(found, arguments.power), "plan.json")
    return 0


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


def difference_lines(found: Difference, power: float | None) -> list[str]:
    """Return the table of a difference, and how many devices a power takes."""
    one, other = found.values
    lines = [
        f"{found.question}: {visible(found.parameter)} {one:g} in a group with {found.share:.0%} of the "
        f"devices, {other:g} in the other"
    ]
    lines.append("  epsilon " + "".join(f"{n:>18,}" for n in found.devices) + "  devices in both")
    for epsilon, halves in found.half_widths.items():
        pairs = zip(halves, found.power[epsilon], strict=True)
        lines.append(f"  {epsilon:>7} " + "".join(f"{f'± {half:.3g}, {at:.0%}':>18}" for half, at in pairs))
    lines.append(
        "  (± of the difference, half of its 90 % interval; and how often that is on its own side of 0)"
    )
    for epsilon, needed in found.needed.items():
        lines.append(f"  power {power:g} at epsilon {epsilon}: {_devices(needed)}")
    lines += [f"  assumed: {visible(line)}" for line in found.assumed]
    return [*lines, *[f"  {note}" for note in found.notes]]


def _devices(needed: int | None) -> str:
    from inference.design.sample_size import rounded_up

    return (
        "more than a thousand million devices" if needed is None else f"about {rounded_up(needed):,} devices"
    )


def _run_shuffled(arguments: argparse.Namespace) -> int:
    from inference.design.device_epsilon import plan_shuffled
    from inference.design.folders import OF_SET
    from inference.results.saving import new_folder

    study = load_study(arguments.study)
    if len(arguments.n or ()) != 1:
        raise UsageError(
            "--shuffled is for one number of --n, whose reports are the set",
            code="plan.set_needs_one_number",
        )
    with new_folder(Path(arguments.out)) as folder:
        found = plan_shuffled(study, arguments.shuffled, arguments.n[0], **stated(arguments))
        entries = {name: {"epsilon": epsilon} for name, epsilon in found.epsilons.items()}
        document = {
            "study_digest": study.digest,
            "shuffled_privacy": asdict(found.found),
            "questions": entries,
        }
        _write(folder, document)
        whole = json.dumps(found.document, indent=1, ensure_ascii=False)
        (folder / OF_SET).write_text(whole + "\n", encoding="utf-8")
    where = Path(arguments.out) / OF_SET
    lines = [*set_lines(study, found), f"{where}: this study with these epsilons"]
    show_written(arguments, lines, "plan.json")
    return 0


def set_lines(study: Study, found: DeviceEpsilon) -> list[str]:
    """Return a line for each question's epsilon, and the resulting privacy of the set."""
    total = f"{found.found.device_epsilon:.4g}"
    lines = [f"epsilon {total} of the device's own, for {found.wished:g} towards the set of reports"]
    if found.is_most:
        lines = [f"epsilon {total} of the device's own: more would hide hardly anything by itself"]
    column = max(len(name) for name in found.epsilons)
    lines += [f"  {name:{column}} {epsilon:>8}" for name, epsilon in found.epsilons.items()]
    return [*lines, *lines_of(study, found.found)]


def _write(folder: Path, document: Any) -> None:
    text = json.dumps(document, indent=1, ensure_ascii=False)
    (folder / "plan.json").write_text(text + "\n", encoding="utf-8")
