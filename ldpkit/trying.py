"""Try a study: a throw-away collector, its page, made-up answers of many devices, and the fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ldp_client.documents.errors import UsageError
from ldp_client.documents.public import PublicField
from schemas import Study

if TYPE_CHECKING:
    from inference.results.posterior import Posterior

Answers = dict[str, Any]
# The share of made-up people who say yes; each choice is as likely as the one before it times FALL.
YES, FALL = 0.3, 0.7
# What a study has only for its real collector and its real days.
LEFT_OUT = ("channel", "opens", "closes")


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
        | {field.id: _public_value(field, random) for field in study.public}
        for _ in range(people)
    ]


def _answer(asked: Any, random: Random) -> Any:
    """Make up an answer to a question, or to a field of a record."""
    if getattr(asked, "features", ()):
        return {field.id: _answer(field, random) for field in (*asked.features, asked.response)}
    if asked.choices and getattr(asked, "ask", "") != "yes_no":
        return random.choices(asked.choices, _falling(len(asked.choices)))[0]
    if asked.bounds is None:
        return random.random() < YES
    low, high = (float(bound) for bound in asked.bounds)
    return random.triangular(low, high, low + (high - low) / 3)


def _public_value(field: PublicField, random: Random) -> Any:
    if field.choices:
        return random.choices(field.choices, _falling(len(field.choices)))[0]
    return field.value(random.randrange(field.size))


def _falling(count: int) -> list[float]:
    """Return a weight for each choice."""
    return [FALL**place for place in range(count)]


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


def try_study(
    study: Study,
    answers: Sequence[Answers],
    folder: Path,
    show_page: Callable[[str], None],
    progress: Callable[[str], None],
) -> dict[str, Posterior]:
    """Collect a report for each person's answers at a throw-away collector, and fit them.

    Args:
        study: what `trial_of` returned.
        answers: each person's answers and public values.
        folder: an empty folder for the reports, the posteriors and the report page.
        show_page: gets the address of the participants' page, while the collector runs. When it returns,
            the reports are exported.
        progress: gets a line for each step.

    Returns:
        {question id: posterior}.

    Raises:
        TransferError: the collector did not start, or a device could not send.
    """
    from inference.demo.run import running_collector, send_all
    from inference.fitting import fit
    from inference.results.report import save_report
    from summaries.reading import summarize

    reports = folder / "reports.ndjson"
    with TemporaryDirectory(prefix="ldpkit-") as name, running_collector(Path(name)) as collector:
        collector.publish(study)
        send_all(study, answers, collector.url, Path(name) / "devices", progress)
        show_page(f"{collector.url}/s/{study.id}")
        collector.export(study, reports)
    (folder / "study.json").write_text(study.to_json() + "\n", encoding="utf-8")
    posteriors = fit(study, summarize(study, [str(reports)]), 0, progress)
    save_report(posteriors, folder, study)
    return posteriors
