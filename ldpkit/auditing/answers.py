"""Answers that an audit compares, chosen as the hardest to tell apart."""

from itertools import combinations
from random import Random
from typing import Any

from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.question import Field, Question
from ldp_client.mechanisms import Mechanism

Answers = dict[str, Any]

# Compare only the pairs furthest apart of records with added noise.
RECORD_PAIRS = 2
# Of more choices than this, only some are tried.
FEW_CHOICES = 5
# Far beyond the bounds, which are −1 and 1.
FAR = 1000.0
RANDOM_ANSWERS = 30


def answers_for(question: Question) -> Answers:
    """Return named answers: extremes, values beyond them, and some between."""
    if question.ask == "number":
        # A third is off the grid points of most grids: noise on a coarser grid than the answers' would show.
        places = {"far below": -FAR, "high": 1.0, "far above": FAR, "a third": -1 / 3, "middle": 0.0}
        answers: Answers = {name: _at(question.bounds, place) for name, place in places.items()}
    elif question.ask == "yes_no":
        answers = {"no": False, "yes": True}
    elif question.ask == "choice":
        # All choices, or the first two, a choice in another byte, the middle choice and the last.
        count = len(question.choices)
        some = {0, 1, min(8, count - 1), count // 2, count - 1}
        answers = {
            f"choice {place}": question.choices[place]
            for place in (range(count) if count <= FEW_CHOICES else sorted(some))
        }
    else:
        answers = _records(question)
        if question.ask == "table":
            # Neighbouring tables: each record in a table whose other records are all high.
            answers = {name: _with_others(question, record) for name, record in answers.items()}
    return {**answers, **({"no answer": None} if question.refusal else {})}


def pairs_of(mechanism: Mechanism, answers: Answers) -> list[tuple[str, str]]:
    """Return the pairs of names to compare: all; of records and tables, the furthest apart without noise."""
    pairs = list(combinations(answers, 2))
    if not isinstance(next(iter(answers.values())), dict):
        return pairs
    if not mechanism.words(bytes(mechanism.payload_size)):
        return list(combinations([name for name in answers if name.startswith("all ")], 2))
    silent = {name: words_of(mechanism, answer) for name, answer in answers.items()}
    pairs.sort(key=lambda pair: sum([(a - b) ** 2 for a, b in zip(silent[pair[0]], silent[pair[1]])]))
    return pairs[-RECORD_PAIRS:]


def _records(question: Question) -> Answers:
    """Return records in opposite and orthogonal directions, at and far beyond bounds, with both responses."""
    count = len(question.features)
    shapes = {
        "all high": [1.0] * count,
        "all low": [-1.0] * count,
        "high-low": [(-1.0) ** place for place in range(count)],
        "first": [1.0] + [0.0] * (count - 1),
        "last": [0.0] * (count - 1) + [1.0],
        "far": [FAR] * count,
    }
    return {
        f"{name}, {end}": _record(question, [*places, response])
        for name, places in shapes.items()
        for end, response in (("low", -FAR), ("high", FAR))
    }


def _with_others(question: Question, record: Answers) -> Answers:
    """Return a table of one group: a record and, if the mechanism averages, others that do not change."""
    others = _record(question, [1.0] * len(question.features) + [FAR])
    more = question.mechanism.average - 1
    return {field: [value, *[others[field]] * more] for field, value in record.items()}


def random_answers(question: Question) -> list[Any]:
    """Return answers to a number, record or table question, inside its bounds and beyond: always the same."""
    random = Random(question.id)
    if question.ask == "number":
        return [_at(question.bounds, random.uniform(-3, 3)) for _ in range(RANDOM_ANSWERS)]
    records = [
        _record(question, [random.uniform(-3, 3) for _ in question.fields]) for _ in range(RANDOM_ANSWERS)
    ]
    return records if question.ask == "record" else [_with_others(question, record) for record in records]


def _record(question: Question, places: list[float]) -> Answers:
    return {field.id: _value(field, place) for field, place in zip(question.fields, places)}


def _value(field: Field, place: float) -> float | bool | str:
    """Return a field's value at a place in [−1, 1]: a choice from first to last, or yes above the middle."""
    if field.choices:
        last = len(field.choices) - 1
        return field.choices[min(max(round((place + 1) / 2 * last), 0), last)]
    return place > 0 if field.bounds is None else _at(field.bounds, place)


def _at(bounds: Any, place: float) -> float:
    """Return the number at −1 (low bound) … 1 (high bound), or beyond."""
    low, high = float(bounds[0]), float(bounds[1])
    return low + (place + 1) / 2 * (high - low)


def words_of(mechanism: Mechanism, answer: Any) -> list[int]:
    """Return the integers of a payload whose randomness is the same on every call."""
    return mechanism.words(mechanism.perturb(answer, NotForRealAnswers(Random(0).randbytes)))
