"""The command `try`: a study at work, from its page to its report, on this computer alone."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import click

from ldpkit.cli.commands import command, study_argument
from ldpkit.cli.output import progress, show, warn

if TYPE_CHECKING:
    from schemas import Study

PEOPLE = 200


@command("try", "try study.json")
@study_argument
@click.option(
    "--answers", metavar="FILE", help="people's answers in CSV (default: made-up answers of 200 people)"
)
def try_(study: Study, answers: str | None) -> int:
    """Show a study at work: its page, reports from made-up people, and the report.

    The collector is on this computer, and ends with the command. Nothing leaves this computer. On a terminal,
    pages open in a browser. The results are in a temporary folder.
    """
    from ldpkit.answer_files import read_answers
    from ldpkit.trying import answer_lines, simulated_answers, trial_of

    # 1. Read what decides whether the study can be tried.
    trial = trial_of(study)
    if trial.digest != study.digest:
        show(["tried without its channel, days and tickets"])
    if answers is None:
        people_answers = simulated_answers(trial, PEOPLE, seed=1)
    else:
        people_answers = [row for _, row in read_answers(trial, answers, note=warn)]
    from inference.demo.run import try_study
    from inference.results.intervals import USUAL
    from inference.results.saving import new_folder
    from ldpkit.cli.fitting import show_posteriors

    folder, is_terminal = Path(mkdtemp(prefix="ldpkit-try-")), sys.stdin.isatty()

    def show_page(address: str) -> None:
        show([f"the page for participants: {address}"])
        if is_terminal:
            webbrowser.open(address)
            text = "Answer there if you like, then press Enter"
            click.prompt(text, default="", show_default=False, err=True)

    # 2. Collect and fit.
    with new_folder(folder) as unfinished:
        posteriors = try_study(trial, people_answers, unfinished, show_page, progress())
    # 3. Show the results, with made-up answers only: a file's answers are people's own.
    made_up = answer_lines(trial, people_answers) if answers is None else []
    code = show_posteriors(posteriors, str(folder), USUAL, made_up)
    if is_terminal:
        webbrowser.open((folder / "report.html").absolute().as_uri())
    return code
