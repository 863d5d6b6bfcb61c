"""Answers of made-up people to any study, to try it."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from statistics import fmean
from typing import Any

from ldp_client.documents.errors import UsageError
from ldp_client.documents.public import PublicField
from schemas import Study

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
