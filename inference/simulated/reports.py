"""The summary of a simulated study: noise from the study's own mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.simulated.answers import Truth, draw_answers
from inference.units import RecordUnits
from ldp_client import Mechanism
from ldp_client.core.calibration import NOISE_BITS
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS

# Working memory: this many people at once.
CHUNK = 1 << 17


def simulate(
    question: Question, mechanism: Mechanism, truth: Truth, n: int, random: Generator, clip: bool = True
) -> QuestionSummary:
    """The summary of n people's reports, drawn from the mechanism itself with seeded randomness.

    clip: whether records beyond their bounds or norm are clipped, as devices do. The regression models do
    not know of clipping; without it, their own assumptions hold (only for `gaussian_statistics`).
    """
    reduction = REDUCTIONS[mechanism.name]
    values = np.zeros(reduction.size(mechanism), dtype=np.int64)
    for start in range(0, n, CHUNK):
        count = min(CHUNK, n - start)
        answers = draw_answers(question, truth, count, random)
        if clip or mechanism.name != "gaussian_statistics":
            values += reduction.reduce(mechanism, mechanism.perturb_many(answers, random.bytes))
        else:
            values += _unclipped_sums(question, cast(GaussianStatistics, mechanism), answers, random)
    return QuestionSummary(n, values)


def _unclipped_sums(
    question: Question, mechanism: GaussianStatistics, answers: Mapping[str, NDArray[Any]], random: Generator
) -> NDArray[np.int64]:
    """What n devices' integers add up to if none clips: the statistic of their records, plus noise."""
    vectors = _vectors(question, mechanism.scaled_weight, answers)
    total = vectors.T @ vectors
    exact = [total[i, j] * (1.0 if i == j else np.sqrt(2.0)) for i, j in mechanism.coordinates]
    noise = random.normal(0.0, float(1 << NOISE_BITS), len(exact)) * np.sqrt(len(vectors))
    return np.rint(np.asarray(exact) * mechanism.grid + noise).astype(np.int64)


def _vectors(question: Question, weight: float, answers: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    """v = (constant, features, response) of each record in scaled units, (n, d + 2)."""
    units = RecordUnits(question)
    assert question.response is not None
    features = (np.column_stack([answers[name] for name in units.names]) - units.zero) / units.unit
    response = np.asarray(answers[question.response.id])
    if response.dtype == np.bool_:
        response = np.where(response, 1.0, -1.0)
    scaled = (response - units.response.zero) / units.response.unit
    return np.column_stack([np.full(len(features), weight), features, weight * scaled])


def clipped_share(question: Question, truth: Truth, random: Generator, people: int = 1000) -> float:
    """The share of records that lie beyond their bounds or their norm, which devices would clip."""
    if question.ask != "record":
        return 0.0
    assert question.norm is not None
    vectors = _vectors(question, 1.0, draw_answers(question, truth, people, random))[:, 1:]
    beyond = (np.abs(vectors) > 1).any(axis=1)
    return float(np.mean(beyond | (np.linalg.norm(vectors[:, :-1], axis=1) > float(question.norm))))
