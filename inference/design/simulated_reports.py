"""The summary of a simulated study: noise from the study's own mechanism."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inference.design.simulated_answers import Truth, draw_answers
from inference.design.simulated_totals import exact_total, noisy_total
from inference.design.simulated_vectors import record_vectors
from ldp_client import Mechanism
from ldp_client.bulk import randomise_many
from ldp_client.bulk.quantising import quantise_many
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.mechanisms.summed import SummedMechanism
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
    not know of clipping; without it, their own assumptions hold (only for sums of second moments).
    A secure sum's total is drawn from its law: it depends on the answers' exact sums alone.
    """
    if question.route is not None:
        return QuestionSummary(n, _summed(question, mechanism, truth, n, random, clip))
    reduction = REDUCTIONS[mechanism.name]
    values = np.zeros(reduction.size(mechanism), dtype=np.int64)
    for start in range(0, n, CHUNK):
        count = min(CHUNK, n - start)
        answers = draw_answers(question, truth, count, random)
        if clip or mechanism.name != "gaussian_statistics":
            values += reduction.reduce(
                mechanism,
                randomise_many(mechanism, quantise_many(mechanism, answers), NotForRealAnswers(random.bytes)),
            )
        else:
            values += noisy_total(exact_total(question, mechanism, answers, clip), count, random)
    return QuestionSummary(n, values)


def _summed(
    question: Question, mechanism: Mechanism, truth: Truth, n: int, random: Generator, clip: bool
) -> NDArray[np.int64]:
    total: NDArray[np.float64] = np.zeros(cast(SummedMechanism, mechanism).size)
    for start in range(0, n, CHUNK):
        answers = draw_answers(question, truth, min(CHUNK, n - start), random)
        total += exact_total(question, mechanism, answers, clip)
    return noisy_total(total, n, random)


def clipped_share(question: Question, truth: Truth, random: Generator, people: int = 1000) -> float:
    """The share of records that lie beyond their bounds or their norm, which devices would clip."""
    if question.norm is None:
        return 0.0
    vectors = record_vectors(question, 1.0, draw_answers(question, truth, people, random))[:, 1:]
    beyond = (np.abs(vectors) > 1).any(axis=1)
    return float(np.mean(beyond | (np.linalg.norm(vectors[:, :-1], axis=1) > float(question.norm))))
