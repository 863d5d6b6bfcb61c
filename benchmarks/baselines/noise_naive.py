"""Posteriors that take noisy reports for clean data: same priors, no noise in the likelihood.

What an analyst gets who corrects for bias at most. Intervals are far too narrow; for numbers the spread is
too wide as well. For comparison only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.typing import NDArray

from benchmarks.baselines import pass_glm_log_likelihood
from inference.models import MODELS, family_of
from inference.models.base import Model
from inference.models.choice_forms import unbiased_shares
from inference.models.family import draw
from inference.models.number import cell_edges, place_of
from inference.models.number_law import NumberModel
from inference.models.regression import Scale as RecordScale
from inference.models.regression import regression, residual_sd
from inference.models.regressions import device_statistics
from inference.models.shares import Shares
from ldp_client import Mechanism, mechanism_for
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from schemas import Question
from summaries import QuestionSummary

Matrix = NDArray[np.float64]
Build = Callable[[Question, Mechanism, QuestionSummary], Model]


def noise_naive_model_for(question: Question, summary: QuestionSummary) -> Model:
    """The question's model with its priors, its noisy summary taken for the truth.

    Raises KeyError for a model that has no naive form here.
    """
    return _NAIVE[question.model.name](question, mechanism_for(question), summary)


def _number(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """Every report in the middle of its cell; those beyond a bound count as half a cell inside."""
    family = cast(NumberModel, family_of(question))
    place = place_of(family, question)
    values = place.shift + place.stretch * _middles(mechanism)
    if family.law.positive:
        # Laws on the positive numbers.
        values = np.maximum(values, place.stretch * _middles(mechanism)[0])

    def program(values: Array, counts: Array) -> None:
        numpyro.factor("reports", jnp.sum(counts * family.draw(question).log_prob(values)))

    data = {"values": np.rint(values) if family.law.whole else values, "counts": summary.values}
    start = place.start(family)
    return Model(program, data, start, lambda draws: family.own(draws, place.units))


def _middles(mechanism: Mechanism) -> Matrix:
    """Where the reports of each cell and beyond are taken to be, bounds at 0 and 1; strictly inside."""
    edges, _ = cell_edges(mechanism)
    half = (edges[1] - edges[0]) / 2
    return np.clip(np.concatenate([edges[:1], edges[:-1] + half, edges[-1:]]), half, 1 - half)


def _estimated_counts(mechanism: Mechanism, summary: QuestionSummary) -> Matrix:
    """n times the unbiased frequencies, negative ones as 0."""
    return np.asarray(summary.n * np.maximum(unbiased_shares(cast(ChoiceMechanism, mechanism), summary), 0.0))


def _bernoulli(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    no, yes = _estimated_counts(mechanism, summary)

    def program(no: Array, yes: Array) -> None:
        p = draw(question, "p")
        numpyro.factor("reports", yes * jnp.log(p) + no * jnp.log1p(-p))

    return Model(program, {"no": no, "yes": yes}, {"p": 0.5}, lambda draws: {"p": draws["p"]})


def _multinomial(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    counts = _estimated_counts(mechanism, summary)
    shares = Shares(question, counts / max(counts.sum(), 1), float(counts.sum()))

    def program(counts: Array, order: Array) -> None:
        numpyro.factor("reports", answers_log_prob(counts, shares.draw(order)))

    return Model(program, {"counts": counts, "order": shares.order}, shares.initial, shares.parameters)


def answers_log_prob(counts: Array, shares: Array) -> Array:
    """Return the log probability of noiseless answers; choices without answers add 0, even at share 0."""
    return jnp.sum(counts * jnp.log(jnp.where(counts > 0, shares, 1.0)))


def _moments(mechanism: Mechanism, summary: QuestionSummary) -> Matrix:
    """Σ vvᵀ of v = (1, features, response), (d + 2, d + 2): the nearest matrix that could be one."""
    gaussian = cast(GaussianStatistics, mechanism)
    values, vectors = np.linalg.eigh(device_statistics(gaussian, summary).sums[0])
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _linear_log_likelihood(question: Question, n: int, moments: Array) -> Array:
    """Σ log Normal(y | intercept + coefficients·x, sd), from the moments."""
    line, sd = regression(question), residual_sd(question)
    weights = jnp.concatenate([-line.intercept[None], -line.coefficients, jnp.ones(1)])
    return -n * jnp.log(sd) - weights @ moments @ weights / (2 * sd**2)


def _logistic_log_likelihood(question: Question, n: int, moments: Array) -> Array:
    """PASS-GLM: Σ of a quadratic in y·(intercept + coefficients·x), from the moments."""
    line = regression(question)
    return pass_glm_log_likelihood(line.intercept, line.coefficients, moments, n)


def _regression(
    log_likelihood: Callable[[Question, int, Array], Array],
    initial: dict[str, object],
    question: Question,
    mechanism: Mechanism,
    summary: QuestionSummary,
) -> Model:
    def program(n: int, moments: Array) -> None:
        numpyro.factor("reports", log_likelihood(question, n, jnp.asarray(moments)))

    data = {"n": summary.n, "moments": _moments(mechanism, summary)}
    start = {"intercept": 0.0, "coefficients": np.zeros(len(question.features)), **initial}
    return Model(program, data, start, RecordScale(question).parameters)


_NAIVE: dict[str, Build] = {
    **{name: _number for name, family in MODELS.items() if isinstance(family, NumberModel)},
    "bernoulli": _bernoulli,
    "multinomial": _multinomial,
    "linear_regression": partial(_regression, _linear_log_likelihood, {"sd": 0.5}),
    "logistic_regression": partial(_regression, _logistic_log_likelihood, {}),
}
