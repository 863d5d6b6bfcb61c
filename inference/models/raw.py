"""The same models on raw answers: what an analyst would get without any privacy. For comparison only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray

from inference import priors
from inference.models import regression
from inference.models.base import Model
from inference.models.number_laws import LAWS, Start
from inference.models.shares import Shares, answers_log_prob
from schemas import Question

Answers = Sequence[Any]


def raw_model_for(question: Question, answers: Answers) -> Model:
    """The question's model with its priors, conditioned on one raw answer for each person."""
    return _RAW[question.model.name](question, answers)


def _number(question: Question, answers: Answers) -> Model:
    law = LAWS[question.model.name]
    units = law.units(question)
    values, counts = _distinct(answers)

    def program(values: Array, counts: Array) -> None:
        scaled = (values - units.zero) / units.unit
        numpyro.factor("reports", jnp.sum(counts * law.draw(question).log_prob(scaled)))

    mean, variance = np.average(values, weights=counts), np.cov(values, fweights=counts) + 1e-9
    start = Start(float(mean - units.zero) / units.unit, float(variance) / units.unit**2)
    return Model(
        program, {"values": values, "counts": counts}, law.start(start), lambda draws: law.own(draws, units)
    )


def _distinct(answers: Answers) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    values, counts = np.unique(np.asarray(answers, dtype=np.float64), return_counts=True)
    return values, counts


def _bernoulli(question: Question, answers: Answers) -> Model:
    yes = int(sum(bool(answer) for answer in answers))

    def program(n: int, yes: int) -> None:
        numpyro.sample("reports", dist.Binomial(n, priors.bernoulli(question)), obs=yes)

    return Model(program, {"n": len(answers), "yes": yes}, {"p": 0.5}, lambda draws: {"p": draws["p"]})


def _multinomial(question: Question, answers: Answers) -> Model:
    counts = np.asarray([sum(answer == label for answer in answers) for label in question.choices])

    shares = Shares(question, counts / max(counts.sum(), 1), float(counts.sum()))

    def program(counts: Array, order: Array) -> None:
        numpyro.factor("reports", answers_log_prob(counts, shares.draw(order)))

    data = {"counts": counts, "order": shares.order}
    return Model(program, data, shares.initial, shares.parameters, redrawn=shares.redrawn)


def _linear(question: Question, answers: Answers) -> Model:
    features, response = _design(question, answers)
    d = features.shape[1]

    def program(features: Array, response: Array) -> None:
        line = priors.regression(question)
        law = dist.Normal(line.intercept + features @ line.coefficients, priors.residual_sd(question))
        numpyro.sample("reports", law, obs=response)

    initial = {"intercept": 0.0, "coefficients": np.zeros(d), "sd": 0.5}
    return Model(
        program, {"features": features, "response": response}, initial, regression.Scale(question).parameters
    )


def _logistic(question: Question, answers: Answers) -> Model:
    features, response = _design(question, answers)
    d = features.shape[1]

    def program(features: Array, response: Array) -> None:
        line = priors.regression(question)
        law = dist.BernoulliLogits(line.intercept + features @ line.coefficients)
        numpyro.sample("reports", law, obs=jnp.asarray(response > 0, dtype=int))

    data = {"features": features, "response": response}
    initial = {"intercept": 0.0, "coefficients": np.zeros(d)}
    return Model(program, data, initial, regression.Scale(question).parameters)


def _design(
    question: Question, answers: Sequence[Mapping[str, Any]]
) -> tuple[regression.Matrix, regression.Matrix]:
    """Features (n, d) and response (n,) in scaled units, not clipped."""
    scale = regression.Scale(question)
    assert question.response is not None
    features = np.asarray([[answer[name] for name in scale.names] for answer in answers], dtype=np.float64)
    response = np.asarray([answer[question.response.id] for answer in answers], dtype=np.float64)
    if question.response.bounds is None:
        response = 2 * response - 1
    return (features - scale.zero) / scale.unit, (response - scale.response.zero) / scale.response.unit


_RAW: dict[str, Callable[[Question, Any], Model]] = {
    **dict.fromkeys(LAWS, _number),
    "bernoulli": _bernoulli,
    "multinomial": _multinomial,
    "linear_regression": _linear,
    "logistic_regression": _logistic,
}
