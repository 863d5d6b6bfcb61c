"""The regressions that studies name: of records' sums, of perturbed records, of raw records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.models import records, statistics
from inference.models.base import Model, Truth
from inference.models.family import Answers, Family, Priors, Sets, register
from inference.models.regression import Scale, linear_priors, logistic_priors, regression, residual_sd
from ldp_client import Mechanism
from schemas import Question
from summaries import QuestionSummary

Matrix = NDArray[np.float64]
Build = Callable[[Question, Mechanism, QuestionSummary], Model]


class RecordRegression(Family):
    """A regression of a record's response on its features, x ~ Normal(mean, covariance).

    Attributes:
        builds: {mechanism: from its reports' summary to the model}; a secure sum's total is read as
            `gaussian_statistics` are, with less noise.
    """

    builds: Mapping[str, Build]

    def condition(
        self, question: Question, mechanism: Mechanism, summary: QuestionSummary, sets: Sets | None = None
    ) -> Model:
        del sets
        build = self.builds.get(mechanism.name, self.builds["gaussian_statistics"])
        return build(question, mechanism, summary)

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        """Features are normal, as the model takes them."""
        scale = Scale(question)
        assert question.response is not None
        factor = np.atleast_2d(truth.sites.get("feature_correlation", 1.0))
        white = random.normal(size=(n, len(scale.names))) @ factor.T
        features = scale.zero + scale.unit * (truth.sites["feature_mean"] + truth.sites["feature_sd"] * white)
        slopes = np.asarray([truth.parameters[f"coefficient[{name}]"] for name in scale.names])
        line = truth.parameters["intercept"] + features @ slopes
        response = self.respond(line, truth.parameters, random)
        return {**dict(zip(scale.names, features.T, strict=True)), question.response.id: response}

    def respond(self, line: Matrix, truth: Mapping[str, float], random: Generator) -> NDArray[Any]:
        """Draw responses (n,) given the linear predictor (n,), in own units."""
        raise NotImplementedError


@register
class LinearRegression(RecordRegression):
    """y | x ~ Normal(intercept + coefficients·x, sd)."""

    name = "linear_regression"
    builds = MappingProxyType({"gaussian_statistics": statistics.linear, "gaussian_record": records.linear})
    reads = tuple(builds)

    def priors(self, question: Question) -> Priors:
        return linear_priors(question)

    def condition_on_answers(self, question: Question, answers: Answers) -> Model:
        features, response = _design(question, answers)

        def program(features: Array, response: Array) -> None:
            line = regression(question)
            law = dist.Normal(line.intercept + features @ line.coefficients, residual_sd(question))
            numpyro.sample("reports", law, obs=response)

        initial = {"intercept": 0.0, "coefficients": np.zeros(features.shape[1]), "sd": 0.5}
        data = {"features": features, "response": response}
        return Model(program, data, initial, Scale(question).parameters)

    def respond(self, line: Matrix, truth: Mapping[str, float], random: Generator) -> NDArray[Any]:
        return line + random.normal(0, truth["sd"], len(line))


@register
class LogisticRegression(RecordRegression):
    """P(yes | x) = sigmoid(intercept + coefficients·x)."""

    name = "logistic_regression"
    builds = MappingProxyType(
        {"gaussian_statistics": statistics.logistic, "gaussian_record": records.logistic}
    )
    reads = tuple(builds)

    def priors(self, question: Question) -> Priors:
        return logistic_priors(question)

    def condition_on_answers(self, question: Question, answers: Answers) -> Model:
        features, response = _design(question, answers)

        def program(features: Array, response: Array) -> None:
            line = regression(question)
            law = dist.BernoulliLogits(line.intercept + features @ line.coefficients)
            numpyro.sample("reports", law, obs=jnp.asarray(response > 0, dtype=int))

        data = {"features": features, "response": response}
        initial = {"intercept": 0.0, "coefficients": np.zeros(features.shape[1])}
        return Model(program, data, initial, Scale(question).parameters)

    def respond(self, line: Matrix, truth: Mapping[str, float], random: Generator) -> NDArray[Any]:
        del truth
        return random.random(len(line)) < 1 / (1 + np.exp(-line))


def _design(question: Question, answers: Sequence[Mapping[str, Any]]) -> tuple[Matrix, Matrix]:
    """Features (n, d) and response (n,) in scaled units, not clipped."""
    scale = Scale(question)
    assert question.response is not None
    features = np.asarray([[answer[name] for name in scale.names] for answer in answers], dtype=np.float64)
    response = np.asarray([answer[question.response.id] for answer in answers], dtype=np.float64)
    if question.response.bounds is None:
        response = 2 * response - 1
    return (features - scale.zero) / scale.unit, (response - scale.response.zero) / scale.response.unit
