"""Logistic regression from the signs of sampled products.

Features that are all yes/no have 2^d combinations, called cells. Their law is log-linear with all pairs. The
line gives each cell's share of yes, and sums over the cells give every product's mean exactly. The cells form
a table of the first features by the last, so that sums are products of small matrices. If any feature is a
number, all features are modelled as jointly normal, as in the other logistic models. The products' means are
then exact by Stein's lemma (METHODS 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.likelihoods import ProductSigns
from inference.likelihoods.regression.sigmoid import response_moments
from inference.models.base import Draws, Model, notes_of
from inference.models.clipping import beyond_bounds
from inference.models.leveled_regressions import regression_on_levels
from inference.models.regression import Scale, regression
from inference.models.sampled_products import (
    feature_parameters,
    features,
    few_reports,
    from_sites,
    parameters,
    second_moments,
    signed_summaries,
    signs_of,
    start,
    together,
)
from inference.units import has_levels
from ldp_client import Mechanism
from ldp_client.mechanisms.sampled_products import SampledProducts
from schemas import Question
from summaries import QuestionSummary

Values = NDArray[np.float64]
# Prior on log shares of cells: sd of a main effect; scale and degrees of freedom of a pair's Student's t.
MAIN, PAIR, TAILS = 1.0, 0.25, 4.0


def logistic_from_products(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """Return the model P(yes | x) = sigmoid(intercept + coefficients·x), over cells or normal features."""
    products = cast(SampledProducts, mechanism)
    if has_levels(question):
        return regression_on_levels(question, products, summary)
    if any(field.bounds for field in question.features):
        return _of_normal_features(question, products, summary)

    def program(n: int, counts: Array) -> None:
        line = regression(question)
        effects = cell_effects(len(question.features))
        found = cell_moments(line.intercept, line.coefficients, *effects)
        numpyro.deterministic("second", found)
        numpyro.sample("reports", signs_of(products, found, n), obs=jnp.asarray(counts))

    return Model(
        program,
        {"n": summary.n, "counts": summary.values},
        start_of_cells(len(question.features)),
        partial(parameters_of_moments, question),
        few_reports(products, summary),
        summaries=signed_summaries(products, summary, moments_of),
    )


def cell_effects(d: int) -> tuple[Array, Any]:
    """Draw the main effects of d features and the effects of pairs on log shares of cells."""
    main = numpyro.sample("main", dist.Normal(0, MAIN).expand([d]).to_event(1))
    pairs = d * (d - 1) // 2
    if not pairs:
        return main, np.zeros(0)
    return main, numpyro.sample("pair", dist.StudentT(TAILS, 0, PAIR).expand([pairs]).to_event(1))


def start_of_cells(d: int) -> dict[str, object]:
    """Return starting values: no slope, and equal shares of all cells."""
    found: dict[str, object] = {"intercept": 0.0, "coefficients": np.zeros(d), "main": np.zeros(d)}
    # With one feature there is no site "pair": samplers and files of draws accept no empty site.
    return {**found, "pair": np.zeros(d * (d - 1) // 2)} if d > 1 else found


def cell_moments(intercept: Any, coefficients: Any, main: Any, pair: Any) -> Array:
    """Return M = E[uuᵀ], (d + 2, d + 2), u = (1, features, response) of −1 and 1, in O(d 2^d).

    main (d,), pair (d (d − 1) / 2,): coefficients of each feature and each product of two in a cell's log
    share.
    """
    later, first = _signs(len(coefficients))
    law, half = _law(main, pair), first.shape[1]
    line = intercept + _crossed(later @ coefficients[half:], first @ coefficients[:half])
    among = _moments(law, later, first)
    cross = _means(law * jnp.tanh(line / 2), later, first)
    return jnp.block([[among, cross[:, None]], [cross[None], jnp.ones((1, 1))]])


def _signs(d: int) -> tuple[Array, Array]:
    """Return the features' values in cells: (2^h, h) for the last features, (2^k, k) for the first.

    The upper bits of a cell's number belong to the last features; bit j is 1 for no (−1).
    """
    found = [
        1.0 - 2 * (np.arange(1 << size)[:, None] >> np.arange(size) & 1) for size in (d // 2, d - d // 2)
    ]
    return jnp.asarray(found[0]), jnp.asarray(found[1])


def _crossed(later: Any, first: Any) -> Array:
    """Add the contributions of the two groups, in cells (2^h, 2^k)."""
    return later[:, None] + first[None]


def _law(main: Any, pair: Any) -> Array:
    """Return the shares (2^h, 2^k) of the cells."""
    d = len(main)
    later, first = _signs(d)
    half, main = first.shape[1], jnp.asarray(main)
    pairs = jnp.zeros((d, d)).at[np.triu_indices(d, 1)].set(jnp.asarray(pair))
    own = [
        signs @ main[part] + jnp.sum((signs @ pairs[part, part]) * signs, axis=1)
        for signs, part in ((later, slice(half, d)), (first, slice(0, half)))
    ]
    logs = _crossed(*own) + later @ pairs[:half, half:].T @ first.T
    return jax.nn.softmax(logs, axis=(0, 1))


def _means(weights: Array, later: Array, first: Array) -> Array:
    """Return the sums (d + 1,) of weights (2^h, 2^k) times 1 and each feature."""
    columns, rows = jnp.sum(weights, axis=0), jnp.sum(weights, axis=1)
    return jnp.concatenate([jnp.sum(rows)[None], columns @ first, rows @ later])


def _moments(law: Array, later: Array, first: Array) -> Array:
    """Return the means (d + 1, d + 1) of products of two of (1, features)."""
    columns, rows = jnp.sum(law, axis=0), jnp.sum(law, axis=1)
    both = first.T @ law.T @ later
    alike = first.T @ (columns[:, None] * first), later.T @ (rows[:, None] * later)
    mean = _means(law, later, first)
    squares = jnp.block([[alike[0], both], [both.T, alike[1]]])
    return jnp.block([[mean[None]], [mean[1:, None], squares]])


def random_cells(sites: Mapping[str, Any], n: int, random: Generator) -> Values:
    """Draw features (n, d), 0 or 1, of n people from one draw of the sites."""
    with jax.enable_x64(True):
        law = np.asarray(_law(sites["main"], sites.get("pair", np.zeros(0)))).ravel()
    cells = random.choice(len(law), size=n, p=law / law.sum())
    return np.asarray(1 - ((cells[:, None] >> np.arange(len(sites["main"]))) & 1), np.float64)


def parameters_of_moments(question: Question, draws: Draws) -> dict[str, Values]:
    """Return the line, and means, sds of numbers and correlations of the features from M, in own units."""
    mean, square = draws["second"][..., 0, 1:-1], draws["second"][..., 1:-1, 1:-1]
    covariance = square - mean[..., :, None] * mean[..., None, :]
    sd = np.sqrt(np.maximum(np.diagonal(covariance, axis1=-2, axis2=-1), 1e-12))
    correlation = covariance / (sd[..., :, None] * sd[..., None, :])
    return Scale(question).parameters(draws) | feature_parameters(question, mean, sd, correlation)


def _of_normal_features(question: Question, mechanism: SampledProducts, summary: QuestionSummary) -> Model:
    def program(n: int, counts: Array) -> None:
        line = regression(question)
        second = normal_moments(line.intercept, line.coefficients, *features(question), jnp)
        numpyro.sample("reports", signs_of(mechanism, second, n), obs=jnp.asarray(counts))

    return Model(
        program,
        {"n": summary.n, "counts": summary.values},
        start(question),
        partial(parameters, question),
        few_reports(mechanism, summary),
        (notes_of(partial(beyond_bounds, question)),),
        summaries=signed_summaries(mechanism, summary, moments_of),
    )


def normal_moments(intercept: Any, coefficients: Any, mean: Any, covariance: Any, numpy: Any = np) -> Any:
    """Return M for jointly normal features and a response of −1 and 1."""
    cross = covariance @ coefficients
    g = response_moments(intercept + coefficients @ mean, coefficients @ cross)
    return together(mean, covariance, numpy.asarray(g[0]), g[1] * cross, numpy.asarray(1 - g[0] ** 2), numpy)


def cell_probabilities(mechanism: SampledProducts, sites: Mapping[str, Any]) -> Values:
    """Return probabilities (2 T,) of each sign of each product, from one draw of a regression's sites."""
    with jax.enable_x64(True):
        law = cast(ProductSigns, signs_of(mechanism, np.asarray(moments_of(sites)), 1))
        cells = np.asarray(law.cell_probs, np.float64)
    return np.asarray(cells / cells.sum())


def moments_of(sites: Mapping[str, Any]) -> Any:
    """Return M from one draw of the sites of any regression on signs."""
    if "second" in sites:
        return sites["second"]
    return from_sites(sites, second_moments if "sd" in sites else normal_moments)
