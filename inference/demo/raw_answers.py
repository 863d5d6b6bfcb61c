"""Posteriors from the raw answers by the Bayesian bootstrap (Rubin 1981), for the demo's comparison.

Each draw weighs the people by a uniform Dirichlet and computes all parameters from the weighted answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from schemas import Question, Study

Matrix = NDArray[np.float64]

DRAWS = 400
# Newton steps of a regression, and the precision of its normal prior: slopes of few people stay finite.
STEPS, PRECISION = 12, 0.1


def raw_draws(
    study: Study, answers: Sequence[Mapping[str, Any]], seed: int
) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Return {question id: {parameter: draws}}, in the question's own units and with a posterior's names."""
    weights = np.random.default_rng([seed, 1]).dirichlet(np.ones(len(answers)), DRAWS)
    return {
        question.id: _of_question(question, [person[question.id] for person in answers], weights)
        for question in study.questions
    }


def _of_question(question: Question, answers: Sequence[Any], weights: Matrix) -> dict[str, Matrix]:
    """Return {parameter: draws (DRAWS,)} of one question."""
    if question.ask == "record":
        return _regression(question, answers, weights)
    values = np.asarray(answers)
    if question.ask == "yes_no":
        return {"p": weights @ values}
    if question.ask == "choice":
        return {f"p[{label}]": weights @ (values == label) for label in question.choices}
    mean = weights @ values
    return {"mean": mean, "sd": np.sqrt(weights @ values**2 - mean**2), "rate": 1 / mean}


def _regression(
    question: Question, answers: Sequence[Mapping[str, Any]], weights: Matrix
) -> dict[str, Matrix]:
    """Return the draws of a regression of a number, or of a yes/no's log odds."""
    assert question.response is not None
    names = [field.id for field in question.features]
    columns = np.asarray([[1.0, *(answer[name] for name in names)] for answer in answers])
    response = np.asarray([answer[question.response.id] for answer in answers], float)
    binary = question.response.bounds is None
    prior = PRECISION / len(answers) * np.eye(columns.shape[1])
    lines = np.zeros((len(weights), columns.shape[1]))
    for _ in range(STEPS if binary else 1):
        expected = expit(lines @ columns.T) if binary else lines @ columns.T
        spread = expected * (1 - expected) if binary else np.ones_like(expected)
        slope = (weights * (response - expected)) @ columns - lines @ prior
        curvature = np.einsum("dn,ni,nj->dij", weights * spread, columns, columns, optimize=True) + prior
        lines = lines + np.linalg.solve(curvature, slope[..., None])[..., 0]
    sd = np.sqrt(np.sum(weights * (response - lines @ columns.T) ** 2, axis=1))
    return dict(zip(["intercept", *(f"coefficient[{name}]" for name in names)], lines.T, strict=True)) | {
        "sd": sd
    }
