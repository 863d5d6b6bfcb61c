"""What the vectors of numbers ask, and their answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests import studies
from tests.portable.vector_draws import SEEDS, draw

NUMBER_ANSWERS = [0, 12, 3.5, 1e-3, -7, 1e300, None, "NaN", "Infinity", "-Infinity"]


def _number(epsilon: str, low: str, high: str) -> dict[str, Any]:
    return {**studies.with_epsilon(studies.NUMBER, epsilon), "bounds": [low, high]}


def laplace_studies() -> dict[str, Any]:
    return {
        "plain": _number("1", "0", "12"),
        "fractions": _number("0.1", "-5.5", "17.25"),
        "wide": _number("64", "-1e-3", "1e6"),
        "least": _number("0.000001", "0", "1"),
    }


def gaussian_studies() -> dict[str, Any]:
    def study(epsilon: str, delta: str, *bounds: str) -> dict[str, Any]:
        stated = {"name": "gaussian", "epsilon": epsilon, "delta": delta}
        return {**studies.NUMBER, "bounds": list(bounds), "mechanism": stated}

    return {
        "plain": study("1", "1e-6", "0", "12"),
        "fractions": study("0.1", "1e-30", "-5.5", "17.25"),
        "wide": study("64", "0.5", "-1e-3", "1e6"),
    }


def number_draws(name: str, questions: dict[str, Any], heads: Iterator[bytes]) -> Iterator[dict[str, Any]]:
    for study in questions:
        for answer in NUMBER_ANSWERS:
            for seed in SEEDS:
                yield draw(study, answer, f"{name} {seed}")
    for answer in (True, "3", [3]):
        yield draw("plain", answer, f"{name} refused")
    for head in heads:
        for answer in (0, 12):
            yield draw("plain", answer, f"{name} head", head)


NO_NUMBERS = [None, "NaN", "Infinity", "-Infinity", "", "3", True, False, [3], {"hours": 3}]


def missing_studies() -> dict[str, Any]:
    """A question of each kind that takes a number."""
    return {
        "laplace": studies.NUMBER,
        "gaussian": gaussian_studies()["plain"],
        "gaussian_statistics": studies.LINEAR,
        "gaussian_statistics_yes_no": studies.LOGISTIC,
        "gaussian_record": studies.RECORD,
        "gaussian_record_yes_no": studies.YES_NO_RECORD,
    }


def missing_draws() -> Iterator[dict[str, Any]]:
    """Each thing that is no finite number, as the answer and as each field of a record."""
    for name, question in missing_studies().items():
        fields = [*question.get("features", ()), *[question[key] for key in ("response",) if key in question]]
        present = {field["id"]: 3 if "bounds" in field else "yes" for field in fields}
        for wrong in NO_NUMBERS:
            if not fields:
                yield draw(name, wrong, "never read")
            for field in fields:
                if "bounds" in field:
                    yield draw(name, {**present, field["id"]: wrong}, "never read")
        for field in fields:
            rest = {key: value for key, value in present.items() if key != field["id"]}
            yield draw(name, rest, "never read")
