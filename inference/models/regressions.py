"""The regressions that studies name: from records' sums or perturbed records (METHODS 5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtri

from inference.likelihoods import (
    PerturbedLinearRecords,
    PerturbedLogisticRecords,
    SummedLinearStatistics,
    SummedLogisticStatistics,
)
from inference.models import replicates
from inference.models.base import Model, Summaries, Truth, notes_of
from inference.models.clipping import Moments, beyond_bounds, clipping_notes, possible_clipping
from inference.models.family import Family, Priors, Sets, register
from inference.models.leveled_cells import random_people
from inference.models.leveled_regressions import regression_on_levels
from inference.models.product_cells import logistic_from_products, random_cells
from inference.models.regression import (
    Scale,
    draw_sites,
    first_values,
    linear_priors,
    logistic_priors,
)
from inference.models.sampled_products import linear_from_products
from inference.units import has_levels
from ldp_client import Mechanism, mechanism_for
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.gaussian_record import GaussianNumberRecord, GaussianYesNoRecord
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions.records import record_moments, record_rows

Matrix = NDArray[np.float64]


def linear_from_sums(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """Return the model y | x ~ Normal(intercept + coefficients·x, sd), x ~ Normal(mean, covariance)."""
    summed = cast(GaussianStatistics, mechanism)
    found = _model(question, summed, summary, SummedLinearStatistics, {"sd": 0.5})
    notes = clipping_notes(question, _summed_moments(summed, summary))
    return (
        replace(found, notes=notes)
        if notes
        else replace(found, checks=(notes_of(partial(possible_clipping, question)),))
    )


def logistic_from_sums(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """Return the model P(yes | x) = sigmoid(intercept + coefficients·x), x ~ Normal(mean, covariance)."""
    found = _model(question, cast(GaussianStatistics, mechanism), summary, SummedLogisticStatistics, {})
    return replace(found, checks=(notes_of(partial(beyond_bounds, question)),))


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
            # Without reports the statistics are 0 and carry no information, whatever the noise variance.
            noise_variance=jnp.maximum(n, 1) * noise_sd**2,
            constant_weight=weight,
            response_weight=weight,
        )
        numpyro.sample("reports", law, obs=jnp.asarray(statistics))

    data = {"n": summary.n, "statistics": second_moments(mechanism, summary)}
    return Model(program, data, initial, Scale(question).parameters)


def _summed_moments(mechanism: GaussianStatistics, summary: QuestionSummary) -> Moments:
    n, weight = max(summary.n, 1), mechanism.scaled_weight
    total = second_moments(mechanism, summary) / n
    scale = np.append(np.ones(len(total) - 2), weight)
    noise = np.full(len(scale), mechanism.noise_sd / np.sqrt(n))
    return Moments(
        total[0, 1:] / (weight * scale), np.diag(total)[1:] / scale**2, noise / scale**2, summary.n
    )


def second_moments(mechanism: GaussianStatistics, summary: QuestionSummary) -> Matrix:
    """Return noisy Σ vvᵀ in scaled units, (d + 2, d + 2); entries that devices do not send are exact."""
    size = len(mechanism.features) + 2
    total = np.zeros((size, size))
    for (i, j), value in zip(mechanism.coordinates, summary.values, strict=True):
        weight = 1.0 if i == j else np.sqrt(2.0)
        total[i, j] = total[j, i] = value / (mechanism.grid * weight)
    known = [0, size - 1] if mechanism.binary else [0]
    for i in known:
        total[i, i] = summary.n * mechanism.scaled_weight**2
    return total


def linear_from_records(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """Return the model y | x ~ Normal(intercept + coefficients·x, sd), x ~ Normal(mean, covariance).

    The cost of the likelihood does not depend on n.
    """
    record = cast(GaussianNumberRecord, mechanism)
    sums, squares = record_moments(record, summary.values)
    moments = np.block([[np.full((1, 1), float(summary.n)), sums[None]], [sums[:, None], squares]])
    sites = partial(draw_sites, question, True)

    def program(n: int, moments: Array) -> None:
        law = PerturbedLinearRecords(
            **sites(),
            feature_noise_sd=record.feature_noise_sd,
            response_noise_sd=record.response_noise_sd,
            total_count=n,
        )
        numpyro.sample("reports", law, obs=jnp.asarray(moments))

    start = first_values(len(question.features)) | {"sd": 0.5}
    notes = clipping_notes(question, _moments_of_records(record, summary.n, sums, squares))
    model = Model(program, {"n": summary.n, "moments": moments}, start, Scale(question).parameters, notes)
    return model if notes else replace(model, checks=(notes_of(partial(possible_clipping, question)),))


def _moments_of_records(
    record: GaussianNumberRecord, n: int, sums: NDArray[np.float64], squares: NDArray[np.float64]
) -> Moments:
    """Estimate moments of the clipped records by subtracting the noise's variance from each square."""
    noise = np.append(np.full(len(sums) - 1, record.feature_noise_sd), record.response_noise_sd)
    seen = np.diag(squares) / max(n, 1)
    return Moments(sums / max(n, 1), seen - noise**2, seen * np.sqrt(2 / max(n, 1)), n)


def logistic_from_records(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """Return the model P(yes | x) = sigmoid(intercept + coefficients·x), x ~ Normal(mean, covariance).

    A gradient costs O(n d). Raises InputError for a summary without reports: no statistic of fixed size is
    sufficient.
    """
    record = cast(GaussianYesNoRecord, mechanism)
    if summary.reports is None:
        raise InputError(
            f"{question.id}: no summary is exact for it: fit the reports themselves",
            code="fit.summary_not_exact",
        )
    rows = _rows(record, summary.reports)
    sites = partial(draw_sites, question, False)

    def program(rows: Array) -> None:
        law = PerturbedLogisticRecords(
            **sites(),
            feature_noise_sd=record.feature_noise_sd,
            p=float(record.p),
            q=float(record.q),
            # NumPyro cannot validate a value of no rows.
            validate_args=False,
        )
        numpyro.factor("reports", law.summed_log_prob(rows))

    start = first_values(len(question.features))
    return Model(
        program,
        {"rows": rows},
        start,
        Scale(question).parameters,
        checks=(notes_of(partial(beyond_bounds, question)),),
        summaries=Summaries(replicates=replicates.records(record, rows)),
    )


def _rows(record: GaussianYesNoRecord, reports: NDArray[np.uint8]) -> NDArray[np.float64]:
    features, responses = record_rows(record, reports)
    return np.column_stack([features, responses])


Build = Callable[[Question, Mechanism, QuestionSummary], Model]


class RecordRegression(Family):
    """A regression of a record's response on its features, x ~ Normal(mean, covariance).

    Attributes:
        builds: {mechanism: function that builds the model from its reports' summary}. A secure sum's total
            is read like `gaussian_statistics`, with less noise.
    """

    builds: Mapping[str, Build]

    def condition(
        self, question: Question, mechanism: Mechanism, summary: QuestionSummary, sets: Sets | None = None
    ) -> Model:
        del sets
        build = self.builds.get(mechanism.name, self.builds["gaussian_statistics"])
        return build(question, mechanism, summary)

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        """Draw records with normal features, as most of these models assume; a yes/no is a normal's sign."""
        scale = Scale(question)
        assert question.response is not None
        columns, features = _random_people(question, truth, n, random)
        slopes = np.asarray([truth.parameters[f"coefficient[{name}]"] for name in scale.names])
        line = truth.parameters["intercept"] + features @ slopes
        response = self.respond(line, truth.parameters, random)
        return {**columns, question.response.id: response}

    def respond(self, line: Matrix, truth: Mapping[str, float], random: Generator) -> NDArray[Any]:
        """Draw responses (n,) given the linear predictor (n,), in own units."""
        raise NotImplementedError


def _random_people(
    question: Question, truth: Truth, n: int, random: Generator
) -> tuple[dict[str, NDArray[Any]], Matrix]:
    """Draw {feature: answers} of n people, and the line's columns (n, columns), in own units."""
    if has_levels(question):
        scale = Scale(question)
        mechanism = cast(SampledProducts, mechanism_for(question))
        columns, scaled = random_people(question, mechanism, truth.sites, n, random)
        return columns, scale.zero + scale.unit * scaled
    features = _random_features(question, truth, n, random)
    columns = {
        field.id: column if field.bounds else column > 0
        for field, column in zip(question.features, features.T, strict=True)
    }
    return columns, features


def _random_features(question: Question, truth: Truth, n: int, random: Generator) -> Matrix:
    """Draw features (n, d) in own units."""
    if "main" in truth.sites:
        return random_cells(truth.sites, n, random)
    scale, mean = Scale(question), truth.sites["feature_mean"]
    factor = np.atleast_2d(truth.sites.get("feature_correlation", 1.0))
    white = random.normal(size=(n, len(scale.names))) @ factor.T
    features: Matrix = scale.zero + scale.unit * (mean + truth.sites["feature_sd"] * white)
    for index, field in enumerate(question.features):
        if field.bounds is None:
            features[:, index] = white[:, index] < ndtri((1 + mean[index]) / 2)
    return features


def _linear_from_products(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    if has_levels(question):
        return regression_on_levels(question, cast(SampledProducts, mechanism), summary)
    return linear_from_products(question, mechanism, summary)


@register
class LinearRegression(RecordRegression):
    """y | x ~ Normal(intercept + coefficients·x, sd)."""

    name = "linear_regression"
    builds = MappingProxyType(
        {
            "gaussian_statistics": linear_from_sums,
            "gaussian_record": linear_from_records,
            "sampled_products": _linear_from_products,
        }
    )
    reads = tuple(builds)

    def priors(self, question: Question) -> Priors:
        return linear_priors(question)

    def respond(self, line: Matrix, truth: Mapping[str, float], random: Generator) -> NDArray[Any]:
        return line + random.normal(0, truth["sd"], len(line))


@register
class LogisticRegression(RecordRegression):
    """P(yes | x) = sigmoid(intercept + coefficients·x)."""

    name = "logistic_regression"
    builds = MappingProxyType(
        {
            "gaussian_statistics": logistic_from_sums,
            "gaussian_record": logistic_from_records,
            "sampled_products": logistic_from_products,
        }
    )
    reads = tuple(builds)

    def priors(self, question: Question) -> Priors:
        return logistic_priors(question)

    def respond(self, line: Matrix, truth: Mapping[str, float], random: Generator) -> NDArray[Any]:
        del truth
        return random.random(len(line)) < 1 / (1 + np.exp(-line))
