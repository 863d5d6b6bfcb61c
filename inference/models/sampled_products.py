"""Linear regression from the signs of sampled products.

The reports' law depends on the records only through the second moments M = E[uuᵀ] of u = (1, features,
response), exactly. The features therefore need no assumption: the line is the best linear prediction, and the
residual sd is the root mean square of its error. M has the coordinates of the other linear models: means,
sds, correlations, line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.likelihoods import ProductSigns, SignPatterns
from inference.likelihoods.regression.products import correlations, sign_table
from inference.models.base import Draws, Model, Replicates, Summaries, notes_of
from inference.models.clipping import Moments, clipping_notes, possible_clipping
from inference.models.family import priors_of
from inference.models.regression import Scale, correlated, regression, residual_sd
from inference.priors.laws import vector_law
from inference.units import RecordUnits
from ldp_client import Mechanism
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question
from summaries import QuestionSummary

Values = NDArray[np.float64]
# From this number on, 90 % intervals cover the truth in 88 % of studies, even if all signs are alike.
FEWEST_REPORTS = 100


def linear_from_products(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """Return the model of the best linear prediction of the response, for any law of the features."""
    products = cast(SampledProducts, mechanism)

    def program(n: int, counts: Array) -> None:
        line = regression(question)
        mean, covariance = features(question)
        second = second_moments(
            line.intercept, line.coefficients, mean, covariance, residual_sd(question), jnp
        )
        numpyro.sample("reports", signs_of(products, second, n), obs=jnp.asarray(counts))

    model = Model(
        program,
        {"n": summary.n, "counts": summary.values},
        {**start(question), "sd": 0.5},
        partial(parameters, question),
        clipping_notes(question, moments_seen(products, summary)) + few_reports(products, summary),
        summaries=signed_summaries(products, summary, partial(from_sites, moments=second_moments)),
    )
    clipped = len(model.notes) > len(few_reports(products, summary))
    return model if clipped else replace(model, checks=(notes_of(partial(possible_clipping, question)),))


def second_moments(
    intercept: Any, coefficients: Any, mean: Any, covariance: Any, sd: Any, numpy: Any = np
) -> Any:
    """Return M = E[uuᵀ], u = (1, features, response), (d + 2, d + 2) in scaled units; numpy: or JAX's."""
    cross = covariance @ coefficients
    variance = coefficients @ cross + sd**2
    return together(mean, covariance, intercept + coefficients @ mean, cross, variance, numpy)


def together(mean: Any, covariance: Any, response: Any, cross: Any, variance: Any, numpy: Any = np) -> Any:
    """Return M from the features' mean and covariance, the response's, and their covariance `cross`."""
    spread = numpy.block([[covariance, cross[:, None]], [cross[None], variance[None, None]]])
    middle = numpy.concatenate([numpy.ones(1), mean, response[None]])
    return numpy.outer(middle, middle) + numpy.pad(spread, ((1, 0), (1, 0)))


def signed_summaries(
    mechanism: SampledProducts, summary: QuestionSummary, second_of: Callable[[Draws], Any]
) -> Summaries:
    """Return how checks read counts of signs: positive ones, as answers do not move how often a product came.

    second_of: returns M from one draw of the sites.
    """
    return Summaries(
        shown=lambda counts: counts[..., 1::2], replicates=replicated(mechanism, summary, second_of)
    )


def signs_of(mechanism: SampledProducts, second: Any, n: int) -> ProductSigns | SignPatterns:
    """Return the law of n reports' signs, given M; an approximation for several products a report."""
    first, other = np.asarray(mechanism.coordinates).T
    means, gain = second[first, other], float(mechanism.gain)
    if mechanism.signs > 1:
        return SignPatterns(means[np.asarray(mechanism.blocks)], gain)
    return ProductSigns(means, np.asarray(mechanism.weights) / mechanism.total, gain, n)


def features(question: Question) -> tuple[Array, Array]:
    """Draw mean (d,) and covariance (d, d). A yes/no's variance follows from its mean, as its square is 1."""
    units, priors = RecordUnits(question), priors_of(question)
    yes_no = np.asarray([field.bounds is None for field in question.features])
    mean, sd = jnp.zeros(len(yes_no)), jnp.zeros(len(yes_no))
    if not yes_no.all():
        zero, unit = units.zero[~yes_no], units.unit[~yes_no]
        means, sds = (list(priors[name].values()) for name in ("feature_mean", "feature_sd"))
        mean = mean.at[~yes_no].set(numpyro.sample("number_mean", vector_law(means, zero, unit)))
        sd = sd.at[~yes_no].set(numpyro.sample("number_sd", vector_law(sds, 0 * unit, unit)))
    if yes_no.any():
        ones = np.ones(int(yes_no.sum()))
        share = numpyro.sample("share", dist.Beta(ones, ones).to_event(1))
        mean = mean.at[yes_no].set(2 * share - 1)
        sd = sd.at[yes_no].set(2 * jnp.sqrt(share * (1 - share)))
    numpyro.deterministic("feature_mean", mean)
    scale = numpyro.deterministic("feature_sd", sd)
    return mean, correlated(question, scale)


def start(question: Question) -> dict[str, object]:
    """Return starting values: no slope, features about the middle of their bounds."""
    d = len(question.features)
    numbers = sum(field.bounds is not None for field in question.features)
    found: dict[str, object] = {"intercept": 0.0, "coefficients": np.zeros(d)}
    if numbers:
        found |= {"number_mean": np.zeros(numbers), "number_sd": np.full(numbers, 0.5)}
    if numbers < d:
        found |= {"share": np.full(d - numbers, 0.5)}
    return {**found, "feature_correlation": np.eye(d)} if d > 1 else found


def parameters(question: Question, draws: Draws) -> dict[str, Values]:
    """Return the line (with sd and R² if linear), and features' means, sds and correlations, in own units."""
    scale = Scale(question)
    named = scale.parameters(draws)
    slopes, sd = draws["coefficients"], draws["feature_sd"]
    factor = draws.get("feature_correlation", np.ones((*sd.shape, 1)))
    if "sd" in draws:
        explained = np.sum(np.einsum("...i,...ij->...j", slopes * sd, factor) ** 2, axis=-1)
        named["r_squared"] = explained / (explained + draws["sd"] ** 2)
    correlation = factor @ np.swapaxes(factor, -1, -2)
    return named | feature_parameters(question, draws["feature_mean"], sd, correlation)


def feature_parameters(
    question: Question, mean: Values, sd: Values, correlation: Values
) -> dict[str, Values]:
    """Return features' means, sds of numbers and correlations in own units, from scaled (…, d), (…, d, d)."""
    scale = Scale(question)
    own = scale.zero + scale.unit * mean
    named = {f"mean[{name}]": own[..., i] for i, name in enumerate(scale.names)}
    numbers = [i for i, field in enumerate(question.features) if field.bounds is not None]
    named |= {f"sd[{scale.names[i]}]": scale.unit[i] * sd[..., i] for i in numbers}
    for i, j in combinations(range(len(scale.names)), 2):
        named[f"correlation[{scale.names[i]},{scale.names[j]}]"] = correlation[..., i, j]
    return named


def from_sites(sites: Mapping[str, Any], moments: Callable[..., Any]) -> Any:
    """Return M by `second_moments` or another function, from one draw of a regression's sites."""
    # With one feature the site feature_correlation does not exist.
    factor = sites["feature_sd"][:, None] * sites.get("feature_correlation", np.eye(1))
    law = sites["feature_mean"], factor @ factor.T
    line = np.asarray(sites["intercept"]), sites["coefficients"]
    return moments(*line, *law, *([np.asarray(sites["sd"])] if "sd" in sites else []))


def replicated(
    mechanism: SampledProducts, summary: QuestionSummary, second_of: Callable[[Draws], Any]
) -> Replicates | None:
    """Return replicates of positive signs by block and product; None with one product a report.

    second_of: returns M from one draw of the sites.
    """
    if mechanism.signs == 1:
        return None
    patterns = summary.values.reshape(len(mechanism.blocks), mechanism.patterns)
    reports, root = patterns.sum(axis=1)[:, None], np.linalg.cholesky(correlations(patterns))

    def draw(sites: Draws, random: Generator) -> Values:
        with jax.enable_x64(True):
            law = cast(SignPatterns, signs_of(mechanism, np.asarray(second_of(sites)), summary.n))
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


def moments_seen(mechanism: SampledProducts, summary: QuestionSummary) -> Moments:
    """Estimate each field's mean and mean square from the signs; a yes/no's square is 1."""
    negative, positive = counted_signs(mechanism, summary.values).T
    seen = np.maximum(negative + positive, 1)
    gain = float(mechanism.gain)
    found = dict(zip(mechanism.coordinates, (positive - negative) / seen / gain, strict=True))
    noise = dict(zip(mechanism.coordinates, 1 / (gain * np.sqrt(seen)), strict=True))
    fields = range(1, len(mechanism.features) + 2)
    return Moments(
        np.asarray([found[0, i] for i in fields]),
        np.asarray([found.get((i, i), 1.0) for i in fields]),
        np.asarray([noise.get((i, i), 0.0) for i in fields]),
        summary.n,
    )
