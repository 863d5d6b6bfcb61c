"""The subcommands for the time before a study is launched: plan, calibrate."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inference.design.plan_cli import SAME_NUMBERS, add_plan
from ldp_client.commands.output import add_output, progress_of, show_written
from ldp_client.commands.parsers import add_command
from ldp_client.documents.errors import EXIT_NOT_TRUSTED
from schemas.study import load_study

if TYPE_CHECKING:
    from inference.design.calibration import Calibration


def add_commands(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register plan and calibrate."""
    add_plan(subparsers)

    text = "simulate whether intervals contain the truth as often as they say"
    example = "calibrate study.json --question hours --out calibration"
    calibrate = add_command(subparsers, "calibrate", text, example)
    calibrate.add_argument("study", metavar="STUDY.json")
    calibrate.add_argument("--question", metavar="ID", help="default: every question")
    calibrate.add_argument("--out", required=True, metavar="DIR")
    calibrate.add_argument("--seed", type=int, default=0, metavar="N", help=SAME_NUMBERS)
    calibrate.add_argument("--studies", type=int, metavar="N", help="simulated studies (default 100)")
    calibrate.add_argument("--n", type=int, metavar="N", help="devices in each (default 10000)")
    calibrate.add_argument(
        "--device", action="store_true", help="clip records as devices do, which the models ignore"
    )
    add_output(calibrate)
    calibrate.set_defaults(run=run_calibrate)


def run_calibrate(arguments: argparse.Namespace) -> int:
    """ldpkit calibrate STUDY.json [--studies N] [--n DEVICES] [--question ID] [--device] --out DIR"""
    study = load_study(arguments.study)
    from inference.compiling import use_compile_cache
    from inference.design.calibration import (
        DEVICES,
        STUDIES,
        calibrate_each,
        check_simulation,
        questions_to_simulate,
    )
    from inference.design.pictures import rank_plot
    from inference.design.plan import answers_of
    from inference.results.figures import to_png
    from inference.results.saving import new_folder, write_document

    studies = STUDIES if arguments.studies is None else arguments.studies
    devices = DEVICES if arguments.n is None else arguments.n
    if study.sample_one_question:
        told = f"each device answers only 1 of {len(study.questions)} questions"
        devices, whole = answers_of(study, devices), devices
        line = f"{told}: {whole:,} devices are simulated as {devices:,} answers to each"
        print(line, file=sys.stderr, flush=True)
    asked = questions_to_simulate(study, arguments.question)
    for name in asked:
        check_simulation(study.question(name), studies, devices, arguments.seed)
    use_compile_cache()
    progress = progress_of(arguments)
    with new_folder(Path(arguments.out)) as folder:
        questions = [study.question(name) for name in asked]
        found = calibrate_each(questions, studies, devices, arguments.seed, arguments.device, progress)
        entries = {one.question: one.to_document() for one in found}
        head = {"study_digest": study.digest, "seed": arguments.seed}
        write_document(folder / "calibration.json", {**head, "questions": entries})
        for one in found:
            (folder / f"{one.question}.png").write_bytes(to_png(rank_plot(one)))
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
