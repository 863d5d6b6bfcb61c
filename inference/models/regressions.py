"""The regressions that studies name: from records' sums or perturbed records (METHODS 5)."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtri

from inference.default_priors import has_yes_no_response, regression_priors
from inference.likelihoods import PerturbedLinearRecords, perturbed_logistic_density
from inference.likelihoods.common import summed_in_chunks
from inference.likelihoods.holders import HolderStatistics
from inference.likelihoods.regression.moments import linear_moments
from inference.models.base import Draws, Model, Replicates, Summaries, Truth
from inference.models.clipping import ClippedMoments, warnings
from inference.models.family import Family, Priors, add_model
from inference.models.leveled_cells import random_people
from inference.models.record_sums import clipped_moments, rows_of, sums_model
from inference.models.regression import Scale, draw_sites, first_values
from inference.models.sampled_products import regression_from_signs
from ldp_client import Mechanism, mechanism_for
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.gaussian_record import GaussianRecord
from ldp_client.mechanisms.gaussian_statistics import GaussianStatistics
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions.records import record_moments, record_rows

Matrix = NDArray[np.float64]


def _from_sums(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """Return the model of noisy sums of second moments: all devices are one holder of as many rows."""
    statistics = device_statistics(cast(GaussianStatistics, mechanism), summary)
    notes, checks = warnings(question, clipped_moments(statistics, rows_of(statistics)))
    return sums_model(question, statistics, summary.n, notes, checks)


def device_statistics(mechanism: GaussianStatistics, summary: QuestionSummary) -> HolderStatistics:
    """Return the noisy Σuuᵀ of devices, u = (1, features, response) in scaled units, and its noise.

    Entries that devices do not send are exact.
    """
    size, n = len(mechanism.features) + 2, summary.n
    units = np.ones(size)
    units[[0, -1]] = mechanism.scaled_weight
    sums, noise = np.diag([float(n)] + [0.0] * (size - 2) + [n * mechanism.binary]), np.zeros((size, size))
    for (i, j), value in zip(mechanism.coordinates, summary.values, strict=True):
        weight = units[i] * units[j] * (1.0 if i == j else np.sqrt(2.0))
        sums[i, j] = sums[j, i] = value / (mechanism.grid * weight)
        # Without reports the sums are 0 and carry no information, whatever the noise is.
        noise[i, j] = noise[j, i] = mechanism.noise_sd * np.sqrt(max(n, 1)) / weight
    return HolderStatistics(sums[None], noise, np.asarray([float(n)]), intercept=True)


def _model(
    question: Question,
    program: Callable[..., None],
    data: Mapping[str, object],
    moments: ClippedMoments | None = None,
    replicates: Replicates | None = None,
) -> Model:
    """Return a regression on x ~ Normal(mean, covariance); moments: of the records, for warnings."""
    notes, checks = warnings(question, moments)
    parameters, summaries = Scale(question).parameters, Summaries(replicates=replicates)
    return Model(program, data, first_values(question), parameters, notes, checks, summaries=summaries)


def _from_records(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """Return the model of perturbed records, by their second moments: the cost does not depend on n."""
    record = cast(GaussianRecord, mechanism)
    if record.binary:
        return _logistic_from_records(question, record, summary)
    sums, squares = record_moments(record, summary.values)
    moments = np.block([[np.full((1, 1), float(summary.n)), sums[None]], [sums[:, None], squares]])
    noise = np.append(np.full(len(sums) - 1, record.feature_noise_sd), record.response_noise_sd)

    def program(n: int, moments: Array) -> None:
        law = PerturbedLinearRecords(linear_moments(**draw_sites(question)), noise, n)
        numpyro.sample("reports", law, obs=jnp.asarray(moments))

    # The clipped records' squares, without the noise's.
    seen = np.diag(squares) / max(summary.n, 1)
    sure = seen * np.sqrt(2 / max(summary.n, 1))
    clipped = ClippedMoments(sums / max(summary.n, 1), seen - noise**2, sure, summary.n)
    return _model(question, program, {"n": summary.n, "moments": moments}, clipped)


def _logistic_from_records(question: Question, record: GaussianRecord, summary: QuestionSummary) -> Model:
    """Return the model of perturbed records with a yes/no response; a gradient costs O(n d).

    Raises InputError for a summary without reports: no statistic of fixed size is sufficient.
    """
    if summary.reports is None:
        raise InputError(
            f"{question.id}: no summary is exact for it: fit the reports themselves",
            code="fit.summary_not_exact",
        )
    rows: Matrix = np.column_stack(record_rows(record, summary.reports))

    def program(rows: Array) -> None:
        density = perturbed_logistic_density(
            **draw_sites(question),
            feature_noise_sd=record.feature_noise_sd,
            p=float(record.p),
            q=float(record.q),
        )
        numpyro.factor("reports", summed_in_chunks(density, rows))

    return _model(question, program, {"rows": rows}, replicates=perturbed_counts(record, rows))


# Edges of each perturbed feature's cells, from one noise sd below the lower bound to one above the upper.
EDGES = 5


def perturbed_counts(mechanism: GaussianRecord, rows: Matrix) -> Replicates:
    """Return replicates of the counts of perturbed features by cell, separately for reported yes and no.

    rows (n, d + 1): perturbed features in scaled units and the reported response, 1 or 0.
    """
    n, noise = len(rows), float(mechanism.feature_noise_sd)

    def draw(sites: Draws, random: Generator) -> Matrix:
        sd = sites["feature_sd"]
        # The site is a factor of the correlation matrix; with one feature it does not exist.
        root = sites.get("feature_correlation", np.eye(len(sd))) * sd[:, None]
        x = sites["feature_mean"] + random.normal(size=(n, len(sd))) @ root.T
        chance = 1 / (1 + np.exp(np.clip(-(sites["intercept"] + x @ sites["coefficients"]), -700, 700)))
        yes = random.random(n) < chance
        told = random.random(n) < np.where(yes, float(mechanism.p), float(mechanism.q))
        return _cells(np.column_stack([x + noise * random.normal(size=x.shape), told]), noise)

    return Replicates(n, _cells(rows, noise), draw)


def _cells(rows: Matrix, noise: float) -> Matrix:
    """Count perturbed features by feature, response and cell, (d × 2 × (EDGES + 1),)."""
    edges = np.linspace(-1 - noise, 1 + noise, EDGES)
    told = rows[:, -1] > 0.5
    counts = [
        np.bincount(np.searchsorted(edges, column[said]), minlength=EDGES + 1)
        for column in rows[:, :-1].T
        for said in (told, ~told)
    ]
    return np.concatenate(counts).astype(np.float64)


# A secure sum's total is read like `gaussian_statistics`, with less noise.
BUILDS: Mapping[str, Callable[[Question, Mechanism, QuestionSummary], Model]] = {
    "gaussian_statistics": _from_sums,
    "gaussian_record": _from_records,
    "sampled_products": regression_from_signs,
}


class RecordRegression(Family):
    """A regression of a record's response on its features, mostly x ~ Normal(mean, covariance).

    Linear: y | x ~ Normal(intercept + coefficients·x, sd). Logistic: P(yes | x) = sigmoid(intercept +
    coefficients·x).
    """

    reads = tuple(BUILDS)

    def __init__(self, name: str) -> None:
        self.name = name

    def priors(self, question: Question) -> Priors:
        return regression_priors(question)

    def condition(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        return BUILDS.get(mechanism.name, _from_sums)(question, mechanism, summary)

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        """Draw records with normal features, as most of these models assume; a yes/no is a normal's sign."""
        scale = Scale(question)
        assert question.response is not None
        columns, features = _random_people(question, truth, n, random)
        slopes = np.asarray([truth.parameters[f"coefficient[{name}]"] for name in scale.names])
        line = truth.parameters["intercept"] + features @ slopes
        if has_yes_no_response(question):
            response: NDArray[Any] = random.random(n) < 1 / (1 + np.exp(-line))
        else:
            response = line + random.normal(0, truth.parameters["sd"], n)
        return {**columns, question.response.id: response}


def _random_people(
    question: Question, truth: Truth, n: int, random: Generator
) -> tuple[dict[str, NDArray[Any]], Matrix]:
    """Draw {feature: answers} of n people, and the line's columns (n, columns), in own units."""
    scale = Scale(question)
    if "main" in truth.sites:
        mechanism = cast(SampledProducts, mechanism_for(question))
        answers, scaled = random_people(question, mechanism, truth.sites, n, random)
        return answers, scale.zero + scale.unit * scaled
    mean = truth.sites["feature_mean"]
    factor = np.atleast_2d(truth.sites.get("feature_correlation", 1.0))
    white = random.normal(size=(n, len(scale.names))) @ factor.T
    features: Matrix = scale.zero + scale.unit * (mean + truth.sites["feature_sd"] * white)
    answers = {}
    for index, field in enumerate(question.features):
        if field.bounds is None:
            features[:, index] = white[:, index] < ndtri((1 + mean[index]) / 2)
        answers[field.id] = features[:, index] if field.bounds else features[:, index] > 0
    return answers, features


for _name in ("linear_regression", "logistic_regression"):
    add_model(RecordRegression(_name))
