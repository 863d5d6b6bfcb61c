"""What the vectors of choices ask, and their answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests import studies
from tests.portable.vector_draws import SEEDS, draw


def of(name: str, epsilon: str, choices: Any) -> dict[str, Any]:
    return {**studies.CHOICE, "choices": choices, "mechanism": {"name": name, "epsilon": epsilon}}


def choice_studies() -> dict[str, dict[str, Any]]:
    """{mechanism: {name: question}}."""
    return {
        "randomized_response": _response_studies(),
        "oue": _oue_studies(),
        "sue": _sue_studies(),
        "subset_selection": _subset_studies(),
        "olh": _large_studies("olh"),
        "hadamard": _large_studies("hadamard"),
        "memoized": _memoized_studies(),
    }


def _response_studies() -> dict[str, Any]:
    labels = [f"choice {number}" for number in range(300)]
    return {
        "yes-no": studies.YES_NO,
        "yes-no-strong": studies.with_epsilon(studies.YES_NO, "0.01"),
        "three": studies.ONE_OF,
        "many": {**studies.with_epsilon(studies.ONE_OF, "4"), "choices": labels},
    }


def _oue_studies() -> dict[str, Any]:
    labels = [f"choice {number}" for number in range(1024)]
    return {
        "three": studies.CHOICE,
        "thirteen": {**studies.with_epsilon(studies.CHOICE, "0.5"), "choices": labels[:13]},
        "many": {**studies.with_epsilon(studies.CHOICE, "3"), "choices": labels},
    }


def _sue_studies() -> dict[str, Any]:
    return {
        "three": of("sue", "1", studies.CHOICE["choices"]),
        "thirteen": of("sue", "0.5", {"count": 13}),
        "many": of("sue", "3", {"count": 1024}),
    }


def _subset_studies() -> dict[str, Any]:
    return {
        "three": of("subset_selection", "1", studies.CHOICE["choices"]),
        "thirteen": of("subset_selection", "0.5", {"count": 13}),
        "many": of("subset_selection", "4", {"count": 1000}),
    }


def _large_studies(name: str) -> dict[str, Any]:
    return {
        "three": of(name, "0.5", studies.CHOICE["choices"]),
        "hundred": of(name, "2", {"count": 100}),
        "million": of(name, "4", {"count": 1_000_000}),
        "most": of(name, "64", {"count": 1 << 20}),
    }


def _memoized_studies() -> dict[str, Any]:
    kept = studies.KEPT
    return {
        "yes-no": studies.MEMOIZED,
        "three-bits": studies.MEMOIZED_BITS,
        "many": {**studies.CHOICE, "choices": {"count": 300}, "mechanism": {**kept, "epsilon": "5"}},
        "many-bits": {**studies.CHOICE, "choices": {"count": 100}, "mechanism": {**kept, "of": "sue"}},
    }


def choice_answers(question: dict[str, Any]) -> list[Any]:
    if question["ask"] == "yes_no":
        return ["no", "yes", True, False]
    if isinstance(question["choices"], dict):
        last = question["choices"]["count"] - 1
        return [0, 1, last // 2, str(last)]
    labels = question["choices"]
    return [labels[0], labels[len(labels) // 2], labels[-1]]


def choice_draws(questions: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for study, question in questions.items():
        for answer in choice_answers(question):
            for seed in SEEDS:
                yield draw(study, answer, f"choice {seed}")
            for head in (bytes(64), b"\xff" * 8, b"\xff" * 64):
                yield draw(study, answer, "choice head", head)
        numbered = isinstance(question.get("choices"), dict)
        for answer in ("nobody", None, -1, 1 << 20, "01234567", True) if numbered else ("nobody", None, 1):
            yield draw(study, answer, "choice refused")
