"""Posteriors of raw answers, one a person: a model's own priors, without any privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from benchmarks.baselines.noise_naive import answers_log_prob
from inference.models import family_of
from inference.models.base import Model, Sampling
from inference.models.family import draw
from inference.models.number_law import NumberModel
from inference.models.regression import Scale, regression, residual_sd
from inference.models.shares import Shares
from schemas import Question


def raw_model_for(question: Question, answers: Sequence[Any]) -> Model:
    """Condition a yes/no, a choice, a law of a number or a linear regression on raw answers."""
    if question.ask == "yes_no":
        return _bernoulli(question, answers)
    if question.ask == "choice":
        return _multinomial(question, answers)
    if question.ask == "number":
        return _number(question, answers)
    return _linear(question, answers)


def _bernoulli(question: Question, answers: Sequence[bool]) -> Model:
    yes = sum(answers)
    counts = np.asarray([len(answers) - yes, yes])

    def program(counts: Array) -> None:
        share = draw(question, "p")
        numpyro.factor("reports", answers_log_prob(counts, jnp.stack([1 - share, share])))

    return Model(program, {"counts": counts}, {"p": 0.5}, lambda draws: {"p": draws["p"]})


def _multinomial(question: Question, answers: Sequence[Any]) -> Model:
    counts = np.asarray([sum(answer == label for answer in answers) for label in question.choices])
    shares = Shares(question, counts / max(counts.sum(), 1), float(counts.sum()))

    def program(counts: Array, order: Array) -> None:
        numpyro.factor("reports", answers_log_prob(counts, shares.draw(order)))

    data = {"counts": counts, "order": shares.order}
    return Model(program, data, shares.initial, shares.parameters, sampling=Sampling(redrawn=shares.redrawn))


def _number(question: Question, answers: Sequence[float]) -> Model:
    family = cast(NumberModel, family_of(question))
    units = family.units(question)
    scaled = (np.asarray(answers, np.float64) - units.zero) / units.unit

    def program(scaled: Array) -> None:
        numpyro.factor("reports", jnp.sum(family.draw(question).log_prob(scaled)))

    start = family.law.start(float(scaled.mean()))
    return Model(program, {"scaled": scaled}, start, lambda draws: family.own(draws, units))


def _linear(question: Question, answers: Sequence[Mapping[str, float]]) -> Model:
    scale = Scale(question)
    assert question.response is not None
    columns = np.asarray([[answer[name] for name in scale.names] for answer in answers], np.float64)
    response = np.asarray([answer[question.response.id] for answer in answers], np.float64)

    def program(features: Array, response: Array) -> None:
        line = regression(question)
        law = dist.Normal(line.intercept + features @ line.coefficients, residual_sd(question))
        numpyro.sample("reports", law, obs=response)

    data = {
        "features": (columns - scale.zero) / scale.unit,
        "response": (response - scale.response.zero) / scale.response.unit,
    }
    start = {"intercept": 0.0, "coefficients": np.zeros(len(scale.names)), "sd": 0.5}
    return Model(program, data, start, scale.parameters)
