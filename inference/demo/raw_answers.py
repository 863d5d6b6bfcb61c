"""The parameters of the raw answers, which the demo shows beside its posteriors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from schemas import Question, Study

# Newton steps of a regression, and the precision of its normal prior: slopes of few people stay finite.
STEPS, PRECISION = 12, 0.1


def raw_values(study: Study, answers: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return {question id: {parameter: value}}, in the question's own units and with a posterior's names."""
    return {
        question.id: _of_question(question, [person[question.id] for person in answers])
        for question in study.questions
    }


def _of_question(question: Question, answers: Sequence[Any]) -> dict[str, float]:
    if question.ask == "record":
        return _regression(question, answers)
    values = np.asarray(answers)
    if question.ask == "yes_no":
        return {"p": float(values.mean())}
    if question.ask == "choice":
        return {f"p[{label}]": float((values == label).mean()) for label in question.choices}
    return {"mean": float(values.mean()), "sd": float(values.std()), "rate": float(1 / values.mean())}


def _regression(question: Question, answers: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the coefficients of a regression of a number, or of a yes/no's log odds."""
    assert question.response is not None
    names = [field.id for field in question.features]
    columns = np.asarray([[1.0, *(answer[name] for name in names)] for answer in answers])
    response = np.asarray([answer[question.response.id] for answer in answers], float)
    binary = question.response.bounds is None
    line: NDArray[np.float64] = np.zeros(columns.shape[1])
    for _ in range(STEPS if binary else 1):
        expected = expit(columns @ line) if binary else columns @ line
        spread = expected * (1 - expected) if binary else np.ones_like(expected)
        slope = columns.T @ (response - expected) - PRECISION * line
        line += np.linalg.solve(
            columns.T @ (spread[:, None] * columns) + PRECISION * np.eye(len(line)), slope
        )
    values = dict(zip(["intercept", *(f"coefficient[{name}]" for name in names)], line.tolist(), strict=True))
    return {**values, "sd": float(np.sqrt(np.mean((response - columns @ line) ** 2)))}
