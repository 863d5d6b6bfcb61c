"""The subcommands for the time before a study is launched: plan, calibrate."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inference.design.formula_cli import (
    add_formula,
    refuse_without_formula,
    run_formula_plan,
    whole_numbers,
)
from inference.design.quick_cli import add_quick, run_quick
from ldp_client.commands.output import add_output, progress_of, show, show_written
from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import EXIT_NOT_TRUSTED, InputError, UsageError
from ldp_client.files.disk import chosen_questions, load_study
from ldp_client.words.text import visible

if TYPE_CHECKING:
    from inference.design.calibration import Calibration
    from inference.design.plan import Plan
    from schemas import Study

SAME_NUMBERS = "the same seed gives the same numbers (default 0)"


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register dossier, plan and calibrate."""
    text = "write a dossier for an ethics board and a data protection impact assessment"
    dossier = add_command(subparsers, "dossier", text, "dossier study.json --out dossier")
    dossier.add_argument("study", metavar="STUDY.json")
    dossier.add_argument(
        "--out", required=True, metavar="DIR", help="a new folder: gets dossier.md and dossier.html"
    )
    add_output(dossier)
    dossier.set_defaults(run=run_dossier)

    text = "simulate how wide posteriors will be, by devices and epsilon"
    example = "plan study.json --question hours --margin 0.5 --out plan"
    plan = add_command(subparsers, "plan", text, example)
    _add_common(plan, "?")
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
    add_formula(plan)
    add_quick(plan)
    plan.set_defaults(run=run_plan)

    text = "simulate whether intervals contain the truth as often as they say"
    example = "calibrate study.json --question hours --out calibration"
    calibrate = add_command(subparsers, "calibrate", text, example)
    _add_common(calibrate)
    calibrate.add_argument("--studies", type=int, metavar="N", help="simulated studies (default 100)")
    calibrate.add_argument("--n", type=int, metavar="N", help="devices in each (default 10000)")
    calibrate.add_argument(
        "--device", action="store_true", help="clip records as devices do, which the models ignore"
    )
    calibrate.set_defaults(run=run_calibrate)


def _add_common(command: argparse.ArgumentParser, nargs: str | None = None) -> None:
    command.add_argument("study", metavar="STUDY.json", nargs=nargs)
    command.add_argument("--question", metavar="ID", help="default: every question")
    command.add_argument("--out", required=True, metavar="DIR")
    command.add_argument("--seed", type=int, default=0, metavar="N", help=SAME_NUMBERS)
    add_output(command)


def run_dossier(arguments: argparse.Namespace) -> int:
    """ldpkit dossier STUDY.json --out DIR"""
    from inference.design.dossier import FILES, save_dossier

    folder = Path(arguments.out)
    save_dossier(load_study(arguments.study), folder)
    line = f"{' and '.join(str(folder / name) for name in FILES)}: fill in what is marked “to write”"
    show(arguments, [line], {"folder": arguments.out, "files": FILES})
    return 0


def run_plan(arguments: argparse.Namespace) -> int:
    """ldpkit plan STUDY.json [--margin W] [--n N,…] [--epsilon E,…] [--truth NAME=X,…] --out DIR"""
    quick = run_quick(arguments)
    if quick is not None:
        return quick
    if arguments.formula is not None:
        return run_formula_plan(arguments)
    refuse_without_formula(arguments)
    study = load_study(arguments.study)
    from inference.compiling import use_compile_cache
    from inference.design.folders import save_plans
    from inference.design.plan import DEVICES, plan_each, questions_to_plan
    from inference.design.truth import stated_values
    from inference.results.saving import new_folder

    asked = _asked(study, arguments.question)
    _check_wishes(arguments, asked)
    truth = stated_values(arguments.truth)
    epsilons = arguments.epsilon.split(",") if arguments.epsilon else []
    devices = sorted(set(arguments.n or DEVICES))
    for name in asked:
        questions_to_plan(study, name, devices, epsilons, arguments.seed)
    use_compile_cache()
    progress = progress_of(arguments)
    with new_folder(Path(arguments.out)) as folder:
        options = {"parameter": arguments.parameter, "simulated": not arguments.at_once}
        found = plan_each(study, asked, devices, epsilons, truth, arguments.seed, progress, **options)
        lines = [line for one in found for line in plan_lines(one, arguments.margin, arguments.parameter)]
        save_plans(study, found, folder, arguments.margin)
    show_written(arguments, lines, "plan.json")
    return 0


def _check_wishes(arguments: argparse.Namespace, asked: list[str]) -> None:
    """Raise InputError for arguments that would otherwise fail only after minutes of simulation."""
    if arguments.margin is not None and not 0 < arguments.margin < float("inf"):
        raise UsageError("--margin must be a number above 0", code="plan.margin_not_positive")
    named = arguments.parameter or arguments.truth
    if named and len(asked) > 1:
        raise InputError(
            f"--parameter and --truth are for one question: choose it from {', '.join(asked)} by --question",
            code="plan.question_needed",
        )


def plan_lines(found: Plan, width: float | None, parameter: str | None) -> list[str]:
    """The table of a plan, and its answer to how many devices give ± width."""
    from inference.design.plan import REPEATS
    from inference.design.sample_size import devices_for, rounded_up
    from inference.results.diagnostics import listed

    chosen = parameter or found.parameters[0]
    place = found.parameters.index(chosen)
    lines = [f"{found.question}: expected ± of {chosen} (half of the 90 % interval)"]
    lines.append("  epsilon " + "".join(f"{n:>12,}" for n in found.devices) + "  devices")
    for epsilon, widths in found.half_widths.items():
        lines.append(f"  {epsilon:>7} " + "".join(f"{value:>12.4g}" for value in widths[:, place]))
    notes = [f"  {note}" for note in found.notes]
    if found.drawn:
        said = f"{visible(listed(found.drawn))}: as the prior drew it {REPEATS} times; --truth states it"
        notes.append(f"  not stated, {said}")
    if width is None:
        return lines + notes
    for epsilon, widths in found.half_widths.items():
        needed = rounded_up(devices_for(width, found.devices, widths[:, place]))
        how = "at most" if needed <= found.devices[0] else "about"
        lines.append(f"  ± {width:g} at epsilon {epsilon}: {how} {needed:,} devices")
    return lines + notes


def run_calibrate(arguments: argparse.Namespace) -> int:
    """ldpkit calibrate STUDY.json [--studies N] [--n DEVICES] [--question ID] [--device] --out DIR"""
    study = load_study(arguments.study)
    from inference.compiling import use_compile_cache
    from inference.design.calibration import DEVICES, STUDIES, calibrate_each, check_simulation
    from inference.design.folders import save_calibrations
    from inference.design.plan import answers_of
    from inference.results.saving import new_folder

    studies = STUDIES if arguments.studies is None else arguments.studies
    devices = DEVICES if arguments.n is None else arguments.n
    if study.sample_one_question:
        told = f"each device answers only 1 of {len(study.questions)} questions"
        devices, whole = answers_of(study, devices), devices
        tell(f"{told}: {whole:,} devices are simulated as {devices:,} answers to each")
    asked = _asked(study, arguments.question)
    for name in asked:
        check_simulation(study.question(name), studies, devices, arguments.seed)
    use_compile_cache()
    progress = progress_of(arguments)
    with new_folder(Path(arguments.out)) as folder:
        questions = [study.question(name) for name in asked]
        head = (studies, devices, arguments.seed, arguments.device)
        found = calibrate_each(questions, *head, progress)
        save_calibrations(study, found, folder)
    lines = [line for one in found for line in calibration_lines(one)]
    show_written(arguments, lines, "calibration.json")
    return 0 if all(one.ok for one in found) else EXIT_NOT_TRUSTED


def calibration_lines(found: Calibration) -> list[str]:
    """Return the table of a calibration, and the problems that were found."""
    document = found.to_document()
    verdict = "calibrated" if found.ok else "NOT CALIBRATED"
    lines = [
        f"{found.question} ({found.model}, {document['studies']} studies of {found.n} devices): {verdict} "
        f"(a sound one is called wrong once in {1 / document['false_alarm']:.0f} times)"
    ]
    for name, row in document["parameters"].items():
        lines.append(
            f"  {name:28} 50 % intervals contain the truth in {row['covered_50']:.0%}, 90 % in "
            f"{row['covered_90']:.0%} of the studies; ranks: chi-square p = {row['chi_square_p']:.2g}"
        )
    return [*lines, *(f"  {line}" for line in (*found.reasons, *found.notes))]


def _asked(study: Study, question: str | None) -> list[str]:
    """Return the chosen question, or all that can be simulated; the others are reported.

    Raises InputError if none can be.
    """
    from inference.design.calibration import empty_model

    chosen = chosen_questions(study, question)
    names = []
    for one in chosen:
        try:
            empty_model(one)
        except InputError as error:
            if len(chosen) == 1:
                raise
            tell(f"left out: {error}")
            continue
        names.append(one.id)
    if not names:
        raise InputError("no question of this study can be simulated", code="plan.no_question_to_simulate")
    return names


def tell(message: str) -> None:
    """Print progress on standard error."""
    print(message, file=sys.stderr, flush=True)
