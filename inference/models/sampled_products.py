"""Regressions from the signs of sampled products.

The reports' law depends on the records only through the second moments M = E[uuᵀ] of u = (1, features,
response), exactly. A linear regression of numbers and yes/no therefore needs no assumption on the features:
the line is the best linear prediction, and the residual sd is the root mean square of its error. Its M has
the coordinates of the other linear models: means, sds, correlations, line. A logistic regression models
features that are all yes/no, or have levels, by cells (leveled_cells). If any other feature is a number, all
features are modelled as jointly normal, and M is exact by Stein's lemma (METHODS 4.3).
"""

from collections.abc import Mapping
from functools import partial
from itertools import combinations
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.likelihoods.common import CellCounts
from inference.likelihoods.regression.moments import linear_moments, logistic_moments
from inference.likelihoods.regression.products import SignPatterns, correlations, product_signs, sign_table
from inference.models import leveled_cells, regression
from inference.models.base import Draws, Model, Replicates, Summaries
from inference.models.clipping import ClippedMoments, warnings
from inference.units import has_levels
from ldp_client import Mechanism
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question
from summaries import QuestionSummary

Values = NDArray[np.float64]
# From this number on, 90 % intervals cover the truth in 88 % of studies, even if all signs are alike.
FEWEST_REPORTS = 100


def regression_from_signs(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """Return the model of the response's mean or log odds as intercept + coefficients·x."""
    products = cast(SampledProducts, mechanism)
    law = _law_of_features(question, products, summary)

    def program(n: int, counts: Array) -> None:
        line = regression.draw_line(question)
        drawn = law.draw()
        sd = None if products.binary else regression.residual_sd(question)
        second = numpyro.deterministic("second", law.moments(line, sd, *drawn))
        numpyro.sample("reports", signs_of(products, second, n), obs=jnp.asarray(counts))

    def parameters(draws: Draws) -> dict[str, Values]:
        named = regression.Scale(question).parameters(draws)
        if "sd" in draws:
            mean, square = draws["second"][..., 0, -1], draws["second"][..., -1, -1]
            named["r_squared"] = 1 - draws["sd"] ** 2 / np.maximum(square - mean**2, 1e-12)
        return named | law.parameters(draws)

    return Model(
        program,
        {"n": summary.n, "counts": summary.values},
        regression.first_line(question) | law.initial,
        parameters,
        law.notes + few_reports(products, summary),
        law.checks,
        # Answers do not move how often a product came: only positive signs are compared.
        summaries=Summaries(
            shown=lambda counts: counts[..., 1::2], replicates=_replicated(products, summary)
        ),
    )


def _law_of_features(
    question: Question, mechanism: SampledProducts, summary: QuestionSummary
) -> regression.Features:
    if has_levels(question):
        return leveled_cells.law_of_features(question, mechanism)
    parameters = partial(_feature_parameters, question)
    if mechanism.binary and not any(field.bounds for field in question.features):
        return leveled_cells.law_of_features(question, mechanism)._replace(parameters=parameters)
    notes, checks = warnings(question, moments_seen(mechanism, summary))

    def second(line: regression.Regression, sd: Any, mean: Array, covariance: Array) -> Array:
        if sd is None:
            return logistic_moments(line.coefficients, line.intercept, mean, covariance).second
        return linear_moments(line.coefficients, line.intercept, sd, mean, covariance).second

    draw = partial(regression.normal_features, question)
    return regression.Features(draw, second, regression.first_values(question), parameters, notes, checks)


def _feature_parameters(question: Question, draws: Draws) -> dict[str, Values]:
    """Return features' means, sds of numbers and correlations from M, in own units."""
    scale = regression.Scale(question)
    mean, square = draws["second"][..., 0, 1:-1], draws["second"][..., 1:-1, 1:-1]
    covariance = square - mean[..., :, None] * mean[..., None, :]
    sd = np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 1e-12))
    own = scale.zero + scale.unit * mean
    named = {f"mean[{name}]": own[..., i] for i, name in enumerate(scale.names)}
    numbers = [i for i, field in enumerate(question.features) if field.bounds is not None]
    named |= {f"sd[{scale.names[i]}]": scale.unit[i] * sd[..., i] for i in numbers}
    for i, j in combinations(range(len(scale.names)), 2):
        correlation = covariance[..., i, j] / (sd[..., i] * sd[..., j])
        named[f"correlation[{scale.names[i]},{scale.names[j]}]"] = correlation
    return named


def signs_of(mechanism: SampledProducts, second: Any, n: int) -> CellCounts | SignPatterns:
    """Return the law of n reports' signs, given M; an approximation for several products a report."""
    first, other = np.asarray(mechanism.coordinates).T
    means, gain = second[first, other], float(mechanism.gain)
    if mechanism.signs > 1:
        return SignPatterns(means[np.asarray(mechanism.blocks)], gain)
    return CellCounts(product_signs(means, np.asarray(mechanism.weights) / mechanism.total, gain), n)


def cell_probabilities(mechanism: SampledProducts, sites: Mapping[str, Any]) -> Values:
    """Return probabilities (2 T,) of each sign of each product, from one draw of a regression's sites."""
    with jax.enable_x64(True):
        law = cast(CellCounts, signs_of(mechanism, np.asarray(sites["second"]), 1))
        cells = np.asarray(law.cell_probs, np.float64)
    return np.asarray(cells / cells.sum())


def _replicated(mechanism: SampledProducts, summary: QuestionSummary) -> Replicates | None:
    """Return replicates of positive signs by block and product; None with one product a report."""
    if mechanism.signs == 1:
        return None
    patterns = summary.values.reshape(len(mechanism.blocks), mechanism.patterns)
    reports, root = patterns.sum(axis=1)[:, None], np.linalg.cholesky(correlations(patterns))

    def draw(sites: Draws, random: Generator) -> Values:
        with jax.enable_x64(True):
            law = cast(SignPatterns, signs_of(mechanism, np.asarray(sites["second"]), summary.n))
            told, variance = (np.asarray(one) for one in law.signs())
        noise = np.einsum("bij,bj->bi", root, random.normal(size=told.shape))
        seen = told + noise * np.sqrt(variance / np.maximum(reports, 1))
        return np.asarray(reports * (1 + np.clip(seen, -1, 1)) / 2).ravel()

    return Replicates(summary.n, (patterns @ (sign_table(mechanism.signs) > 0)).ravel().astype(float), draw)


def few_reports(mechanism: SampledProducts, summary: QuestionSummary) -> tuple[str, ...]:
    """Return a note if averages of signs, several a report, are of too few reports to be normal."""
    fewest = int(summary.values.reshape(len(mechanism.blocks), mechanism.patterns).sum(axis=1).min())
    if mechanism.signs == 1 or not summary.n or fewest >= FEWEST_REPORTS:
        return ()
    return (
        f"some {mechanism.signs} products were sampled together in only {fewest} reports, and below "
        f"{FEWEST_REPORTS} the intervals may be too narrow: ask more people, or use one product a report",
    )


def counted_signs(mechanism: SampledProducts, counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count negative and positive signs of each product, (T, 2)."""
    patterns = counts.reshape(len(mechanism.blocks), mechanism.patterns)
    positive = patterns @ (sign_table(mechanism.signs) > 0)
    found = np.zeros((len(mechanism.coordinates), 2), np.int64)
    both = np.stack([patterns.sum(axis=1, keepdims=True) - positive, positive], axis=-1)
    np.add.at(found, np.asarray(mechanism.blocks), both)
    return found


def moments_seen(mechanism: SampledProducts, summary: QuestionSummary) -> ClippedMoments:
    """Estimate each field's mean and mean square from the signs; a yes/no's square is 1."""
    negative, positive = counted_signs(mechanism, summary.values).T
    seen = np.maximum(negative + positive, 1)
    gain = float(mechanism.gain)
    found = dict(zip(mechanism.coordinates, (positive - negative) / seen / gain, strict=True))
    noise = dict(zip(mechanism.coordinates, 1 / (gain * np.sqrt(seen)), strict=True))
    fields = range(1, len(mechanism.features) + 2)
    return ClippedMoments(
        np.asarray([found[0, i] for i in fields]),
        np.asarray([found.get((i, i), 1.0) for i in fields]),
        np.asarray([noise.get((i, i), 0.0) for i in fields]),
        summary.n,
    )
