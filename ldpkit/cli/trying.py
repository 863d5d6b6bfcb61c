"""The commands try and demo: a study at work, from answers of made-up people to its report."""

import sys
import webbrowser
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import mkdtemp
from typing import Any

import click

from ldp_client.documents.errors import UsageError
from ldpkit.answer_files import read_answers
from ldpkit.cli.analysing import show_posteriors
from ldpkit.cli.commands import COUNT, command, study_argument
from ldpkit.cli.output import progress, show, warn
from schemas import Study

Answers = dict[str, Any]
# The share of made-up people who say yes; a question's choice is as likely as the one before it times FALL.
YES, FALL = 0.3, 0.7
# What a study has only for its real collector and its real days.
LEFT_OUT = ("channel", "opens", "closes")
PEOPLE = 200
DEMO = "demo"


def trial_of(study: Study) -> Study:
    """Return the study without its channel and days, which a trial cannot keep. Raises UsageError."""
    if study.protocol is not None or study.respondent == "holder":
        raise UsageError("try is for studies whose reports go to one collector", code="try.not_reports")
    document = {name: part for name, part in study.document.items() if name not in LEFT_OUT}
    if study.public:
        # No ticket carries a value here.
        fields = document["public"]
        document["public"] = [{name: field[name] for name in field if name != "source"} for field in fields]
    return Study(document)


def simulated_answers(study: Study, people: int, seed: int) -> list[Answers]:
    """Make up the answers of people to all questions and public fields."""
    random = Random(seed)
    return [
        {question.id: _answer(question, random) for question in study.questions}
        | {field.id: field.value(random.randrange(field.size)) for field in study.public}
        for _ in range(people)
    ]


def _answer(asked: Any, random: Random) -> Any:
    """Make up an answer to a question, or to a field of a record."""
    if getattr(asked, "features", ()):
        return {field.id: _answer(field, random) for field in (*asked.features, asked.response)}
    if asked.choices and getattr(asked, "ask", "") != "yes_no":
        weights = [FALL**place for place in range(len(asked.choices))]
        return random.choices(asked.choices, weights)[0]
    if asked.bounds is None:
        return random.random() < YES
    low, high = (float(bound) for bound in asked.bounds)
    return random.triangular(low, high, low + (high - low) / 3)


def answer_lines(study: Study, answers: Sequence[Answers]) -> list[str]:
    """Describe what people answered, to compare it with the estimates, one line a question."""
    lines = []
    for question in study.questions:
        given = [row[question.id] for row in answers if row.get(question.id) is not None]
        if question.ask == "yes_no" and given:
            share = sum(answer in (True, "yes") for answer in given) / len(given)
            lines.append(f"{question.id}: {share:.1%} of the answers were yes".replace("%", " %"))
        if question.ask == "choice" and given:
            label, count = Counter(given).most_common(1)[0]
            lines.append(f"{question.id}: {count / len(given):.1%} answered {label}".replace("%", " %", 1))
        if question.ask == "number" and given:
            lines.append(f"{question.id}: the mean of the answers was {fmean(map(float, given)):.4g}")
    return lines


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
    # 1. Read what decides whether the study can be tried.
    trial = trial_of(study)
    if trial.digest != study.digest:
        show(["tried without its channel, days and tickets"])
    if answers is None:
        people_answers = simulated_answers(trial, PEOPLE, seed=1)
    else:
        from summaries.people.files import read_frame

        table, name = read_frame(answers), Path(answers).name
        people_answers = [row for _, row in read_answers(trial, table, name, note=warn)]
    # 2. Try it.
    from inference.demo.run import try_study
    from inference.results.intervals import USUAL
    from inference.results.saving import new_folder

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


@command("demo", "demo --n 500")
@click.option("--n", "people", type=COUNT, metavar="N", help="how many people (default: all 6,366)")
def demo(people: int | None) -> int:
    """Run the whole pipeline on real data, in a new folder `demo`; end with a report page."""
    from inference.demo.run import try_study
    from inference.demo.survey import answers_of, survey_study
    from inference.results.intervals import USUAL
    from inference.results.saving import new_folder

    study, answers = survey_study(), answers_of(people, 0)
    with new_folder(Path(DEMO)) as folder:
        posteriors = try_study(study, answers, folder, lambda _address: None, progress())
    return show_posteriors(posteriors, DEMO, USUAL, answer_lines(study, answers))
