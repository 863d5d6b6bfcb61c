"""Questions that offer "prefer not to say": each device refuses to answer them in the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests import studies
from tests.portable.run_vectors import study_outcome
from tests.portable.vector_choices import of
from tests.portable.vector_draws import SEEDS, draw

CHOICES = ("randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard")
NO_CHOICE = ("None", "null", "refused", "", "no answer", 3, False, "NaN")
OFFERED: dict[str, Any] = {"refusal": True}
ORDERED: dict[str, Any] = {"ordered": True}
YES_NO = {**studies.YES_NO, **OFFERED}
NUMBERED = {**of("oue", "1", {"count": 40}), **OFFERED}
MEMOIZED = {**studies.MEMOIZED, **OFFERED}
STUDIES: dict[str, dict[str, Any]] = {
    "offered": studies.document(YES_NO),
    "not-offered": studies.document({**YES_NO, "refusal": False}),
    "a-word": studies.document({**YES_NO, "refusal": "yes"}),
    "nothing": studies.document({**YES_NO, "refusal": None}),
    "numbered": studies.document(NUMBERED),
    "memoized": studies.document(MEMOIZED),
    "a-record": studies.document({**studies.LINEAR, **OFFERED}),
    # A scale is told apart from other choices by people alone; so its rules stand beside these.
    "a-scale": studies.document({**studies.CHOICE, **ORDERED}),
    "no-scale": studies.document({**studies.CHOICE, "ordered": False}),
    "a-scale-with-refusal": studies.document({**studies.CHOICE, **ORDERED, **OFFERED}),
    "a-scale-of-numbers": studies.document({**NUMBERED, **ORDERED, "refusal": False}),
    "no-scale-of-numbers": studies.document({**NUMBERED, "ordered": False, "refusal": False}),
    "no-scale-of-two": studies.document({**YES_NO, "ordered": False}),
    "a-scale-of-two": studies.document({**YES_NO, **ORDERED}),
    "a-scale-in-a-word": studies.document({**studies.CHOICE, "ordered": "yes"}),
}


def refusal_questions() -> dict[str, dict[str, Any]]:
    """{name: question}."""
    of_choices = {name: {**of(name, "1", studies.CHOICE["choices"]), **OFFERED} for name in CHOICES}
    labels = [f"choice {number}" for number in range(255)]
    many = {**of("randomized_response", "4", labels), **OFFERED}
    return {"yes-no": YES_NO, **of_choices, "many": many, "none": studies.YES_NO}


def refusal_draws() -> Iterator[dict[str, Any]]:
    for name, question in refusal_questions().items():
        answers = ["no", True] if question["ask"] == "yes_no" else question["choices"][::2][:2]
        for answer in (None, *answers):
            for seed in SEEDS:
                yield draw(name, answer, f"refusal {seed}")
            for head in (bytes(64), b"\xff" * 64):
                yield draw(name, answer, "refusal head", head)
        for answer in NO_CHOICE:
            if not (question["ask"] == "yes_no" and answer is False):
                yield draw(name, answer, "no refusal")


def refusal_studies() -> Iterator[dict[str, Any]]:
    for name, document in STUDIES.items():
        text = json.dumps(document)
        yield {"name": name, "text": text, **study_outcome(text)}


def _share(share: Any, question: dict[str, Any] = studies.NUMBER, **fields: Any) -> dict[str, Any]:
    return {**question, "refusal": {"share": share}, **fields}


NUMBER_STUDIES: dict[str, dict[str, Any]] = {
    "no-share": studies.document({**studies.NUMBER, "refusal": {}}),
    "true": studies.document({**studies.NUMBER, **OFFERED}),
    "more": studies.document({**studies.NUMBER, "refusal": {"share": "0.5", "epsilon": "1"}}),
    "nothing": studies.document(_share("0")),
    "all": studies.document(_share("1")),
    "a-float": studies.document(_share(0.5)),
    "too-little": studies.document(_share("1e-20")),
    "next-to-all": studies.document(_share("0.9999999")),
}


def number_questions() -> dict[str, dict[str, Any]]:
    """{name: question}."""
    normal = {**studies.NORMAL, "bounds": ["-5.5", "17.25"]}
    return {
        "laplace": _share("0.5"),
        "less-for-the-number": _share("0.75"),
        "little": _share("0.1", studies.with_epsilon(studies.NUMBER, "0.01")),
        "wide": _share("0.5", studies.with_epsilon(studies.NUMBER, "64"), bounds=["-1e-3", "1e6"]),
        "gaussian": _share("0.5", normal),
        "gaussian-more": _share("0.8", normal),
    }


def number_draws() -> Iterator[dict[str, Any]]:
    for name in number_questions():
        for answer in (None, 0, 3.5, 12, 1e300):
            for seed in SEEDS:
                yield draw(name, answer, f"refusable {seed}")
            yield draw(name, answer, "refusable head", b"\xff" * 64)
        for answer in ("NaN", "Infinity", "None", "", True, [3]):
            yield draw(name, answer, "no number")


def number_studies() -> Iterator[dict[str, Any]]:
    for name, document in NUMBER_STUDIES.items():
        text = json.dumps(document)
        yield {"name": name, "text": text, **study_outcome(text)}
