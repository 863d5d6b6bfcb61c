"""Linear and logistic regression from summed, noisy second moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.typing import NDArray

from inference.likelihoods import SummedLinearStatistics, SummedLogisticStatistics
from inference.models.base import Model
from inference.models.clipping import Moments, beyond_bounds, clipping_notes, possible_clipping
from inference.models.regression import Scale, draw_sites, first_values
from ldp_client import Mechanism
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from schemas import Question
from summaries import QuestionSummary

Matrix = NDArray[np.float64]


def linear(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """y | x ~ Normal(intercept + coefficients·x, sd), x ~ Normal(mean, covariance)."""
    summed = cast(GaussianStatistics, mechanism)
    found = _model(question, summed, summary, SummedLinearStatistics, {"sd": 0.5})
    notes = clipping_notes(question, _moments(summed, summary))
    return (
        replace(found, notes=notes) if notes else replace(found, remarks=partial(possible_clipping, question))
    )


def logistic(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """P(yes | x) = sigmoid(intercept + coefficients·x), x ~ Normal(mean, covariance)."""
    found = _model(question, cast(GaussianStatistics, mechanism), summary, SummedLogisticStatistics, {})
    return replace(found, remarks=partial(beyond_bounds, question))


def _model(
    question: Question,
    mechanism: GaussianStatistics,
    summary: QuestionSummary,
    likelihood: Callable[..., Any],
    initial: dict[str, object],
) -> Model:
    d = len(question.features)
    sites = partial(draw_sites, question, "sd" in initial)
    initial |= first_values(d)
    weight, noise_sd = mechanism.scaled_weight, mechanism.noise_sd

    def program(n: int, statistics: Array) -> None:
        law = likelihood(
            **sites(),
            total_count=n,
            # Without reports the statistics are 0 and so is what they teach, whatever the noise.
            noise_variance=jnp.maximum(n, 1) * noise_sd**2,
            constant_weight=weight,
            response_weight=weight,
        )
        numpyro.sample("reports", law, obs=jnp.asarray(statistics))

    data = {"n": summary.n, "statistics": second_moments(mechanism, summary)}
    return Model(program, data, initial, Scale(question).parameters)


def _moments(mechanism: GaussianStatistics, summary: QuestionSummary) -> Moments:
    n, weight = max(summary.n, 1), mechanism.scaled_weight
    total = second_moments(mechanism, summary) / n
    scale = np.append(np.ones(len(total) - 2), weight)
    noise = np.full(len(scale), mechanism.noise_sd / np.sqrt(n))
    return Moments(
        total[0, 1:] / (weight * scale), np.diag(total)[1:] / scale**2, noise / scale**2, summary.n
    )


def second_moments(mechanism: GaussianStatistics, summary: QuestionSummary) -> Matrix:
    """Noisy Σ vvᵀ in scaled units, shape (d + 2, d + 2); entries that devices do not send are exact."""
    size = len(mechanism.features) + 2
    total = np.zeros((size, size))
    for (i, j), value in zip(mechanism.coordinates, summary.values, strict=True):
        weight = 1.0 if i == j else np.sqrt(2.0)
        total[i, j] = total[j, i] = value / (mechanism.grid * weight)
    known = [0, size - 1] if mechanism.binary else [0]
    for i in known:
        total[i, i] = summary.n * mechanism.scaled_weight**2
    return total
