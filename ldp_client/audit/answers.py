"""Answers that an audit compares, chosen as the hardest to tell apart, and repeatable random bytes."""

import hashlib
from itertools import combinations
from random import Random
from typing import Any

from ldp_client.core.randomness import NotForRealAnswers, Source
from ldp_client.documents.question import Field, Question
from ldp_client.mechanisms import Mechanism

Answers = dict[str, Any]


RECORD_PAIRS = 2


# Of more choices than this, only some are tried.
FEW_CHOICES = 5


FAR = 1000.0


REFUSAL = "no answer"


SOME = 30


# How many records to try between the bounds, and at corners.
INSIDE, CORNERS = 4, 2


def answers_for(question: Question) -> Answers:
    """Return named answers: extremes, values beyond them, and some between."""
    makers = {
        "number": _numbers,
        "choice": _choices,
        "yes_no": _yes_no,
        "record": _records,
        "table": _tables,
    }
    refusing = {REFUSAL: None} if question.refusal else {}
    return {**makers[question.ask](question), **refusing}


def pairs_of(mechanism: Mechanism, answers: Answers) -> list[tuple[str, str]]:
    """Return all pairs of names to compare. Numeric records and tables: only the pairs furthest apart."""
    pairs = list(combinations(answers, 2))
    numeric = len(mechanism.words(bytes(mechanism.payload_size))) > 0
    if not numeric or not isinstance(next(iter(answers.values())), dict):
        return pairs
    silent = {name: words_of(mechanism, answers[name], Stream(0)) for name in answers}
    pairs.sort(key=lambda pair: _square_distance(silent[pair[0]], silent[pair[1]]))
    return pairs[-RECORD_PAIRS:]


def _square_distance(one: list[int], other: list[int]) -> int:
    return sum([(a - b) ** 2 for a, b in zip(one, other)])


def _numbers(question: Question) -> Answers:
    assert question.bounds is not None
    low, high = (float(bound) for bound in question.bounds)
    return {
        "far below": low - FAR * (high - low),
        "high": high,
        "far above": high + FAR * (high - low),
        # Off the grid points on most grids, so noise on a coarser grid than the answers' would show.
        "a third": low + (high - low) / 3,
        "middle": (low + high) / 2,
    }


def _yes_no(question: Question) -> Answers:  # noqa: ARG001
    return {"no": False, "yes": True}


def _choices(question: Question) -> Answers:
    """Return all choices, or the first two, a choice in another byte, the middle choice and the last."""
    count = len(question.choices)
    few = count <= FEW_CHOICES
    places = range(count) if few else sorted({0, 1, min(8, count - 1), count // 2, count - 1})
    return {f"choice {place}": question.choices[place] for place in places}


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
    assert question.response is not None
    answers: Answers = {}
    for name, places in shapes.items():
        record = {field.id: _placed(field, place) for field, place in zip(question.features, places)}
        bounds = question.response.bounds
        responses = (False, True) if bounds is None else (_place(bounds, -FAR), _place(bounds, FAR))
        for word, response in zip(("no", "yes") if bounds is None else ("low", "high"), responses):
            answers[f"{name}, {word}"] = {**record, question.response.id: response}
    return answers


def inside_answers(question: Question) -> Answers:
    """Return records between their bounds, and at corners where entries differ: the same on every call."""
    random = Random(question.id)
    fields = question.fields
    shapes = {"middle": [0.0] * len(fields)}
    for number in range(INSIDE):
        shapes[f"inside {number}"] = [random.uniform(-0.9, 0.9) for _ in fields]
    for number in range(CORNERS):
        shapes[f"corner {number}"] = [random.choice((-1.0, 1.0)) for _ in fields]
    return {
        name: {field.id: _placed(field, place) for field, place in zip(fields, places)}
        for name, places in shapes.items()
    }


def _tables(question: Question) -> Answers:
    """Return neighbouring tables: each record of `_records` in a table whose other records are all high."""
    records = _records(question)
    others = records["all high, high"]
    return {name: _with_others(question, record, others) for name, record in records.items()}


def _with_others(question: Question, record: Answers, others: Answers) -> Answers:
    """Return a table of one group: a record and, if the mechanism averages, others that do not change."""
    more = question.mechanism.average - 1
    return {field: [value, *[others[field]] * more] for field, value in record.items()}


def random_answers(question: Question, some: int = SOME) -> list[Any]:
    """Return answers to a number, record or table question, inside its bounds and beyond.

    Every call returns the same. In a field with levels, the counts of any two levels differ by at most one.
    """
    random = Random(question.id)
    if question.bounds is not None:
        return [_place(question.bounds, random.uniform(-3, 3)) for _ in range(some)]
    fields = question.fields
    columns = [_any_values(field, some, random) for field in fields]
    records = [dict(zip([field.id for field in fields], values)) for values in zip(*columns)]
    if question.ask != "table":
        return records
    return [_with_others(question, record, _records(question)["all high, high"]) for record in records]


def _any_values(field: Field, some: int, random: Random) -> list[float | bool | str]:
    if field.bounds is not None and not field.cuts:
        return [_place(field.bounds, random.uniform(-3, 3)) for _ in range(some)]
    levels = [place % levels_of(field) for place in range(some)]
    random.shuffle(levels)
    return [_at_level(field, level, random) for level in levels]


def levels_of(field: Field) -> int:
    """Return how many choices or bins a field has: 2 for a yes/no, 1 for a number without bins."""
    if field.choices or field.cuts:
        return len(field.choices) or len(field.cuts) + 1
    return 2 if field.bounds is None else 1


def _at_level(field: Field, level: int, random: Random) -> float | bool | str:
    if field.choices:
        return field.choices[level]
    if field.bounds is None:
        return bool(level)
    low, high = float(field.bounds[0]), float(field.bounds[1])
    ends = [2 * low - high, *[float(cut) for cut in field.cuts], 2 * high - low]
    return random.uniform(ends[level], ends[level + 1])


def _placed(field: Field, place: float) -> float | bool | str:
    """Return a field's value at a place in [−1, 1]: a choice from first to last, or yes above the middle."""
    if field.choices:
        last = len(field.choices) - 1
        return field.choices[min(max(round((place + 1) / 2 * last), 0), last)]
    return place > 0 if field.bounds is None else _place(field.bounds, place)


def _place(bounds: Any, place: float) -> float:
    """Return the number at −1 (low bound) … 1 (high bound), or beyond."""
    low, high = float(bounds[0]), float(bounds[1])
    return low + (place + 1) / 2 * (high - low)


class Stream(NotForRealAnswers):
    """A source of bytes: `head`, then bytes from a seed (SHAKE-256 in blocks). `taken` counts them."""

    BLOCK = 512

    def __init__(self, seed: int, head: bytes = b"") -> None:
        super().__init__(self)
        self.seed = seed
        self.taken = 0
        self._rest = head
        self._blocks = 0

    def __call__(self, size: int) -> bytes:
        while len(self._rest) < size:
            name = f"{self.seed}/{self._blocks}".encode()
            self._rest += hashlib.shake_256(name).digest(self.BLOCK)
            self._blocks += 1
        taken, self._rest = self._rest[:size], self._rest[size:]
        self.taken += size
        return taken


# On this source all noise is 0.
SILENT = NotForRealAnswers(bytes)


def words_of(mechanism: Mechanism, answer: Any, source: Source) -> list[int]:
    """Return the integers of one payload."""
    return mechanism.words(mechanism.perturb(answer, source))
