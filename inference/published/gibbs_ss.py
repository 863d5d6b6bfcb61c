"""The Gibbs sampler over holders' exact statistics that Gibbs-SS's three forms share (DPBLR II-B4, 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published import prior_forms, requirements
from inference.published.base import Kernel, Method, Run
from inference.published.conjugate import ConjugatePrior, Values
from inference.published.driver import run_kernel
from inference.published.given_grams import nearest_semidefinite
from inference.published.laplace_mixture import draw_first_variances, draw_variances
from inference.published.normal_inverse_gamma import draw_regression
from inference.published.semidefinite import root
from inference.published.summed_moments import record_moments
from inference.sampling import Sampled

# How often sums are drawn while one of squares is negative.
TRIES = 10


class Observed(NamedTuple):
    """k entries (rows, columns) of the sums, J holders; `known` (p, p): the sums of those that have no noise.

    released: (J, k), 0 where not released. scale: (k,), b of Laplace noise, sd of Gaussian noise, inf where
    not released. laplace: 1 or 0. counts: (J,). second, covariance: moments of w that do not change.
    """

    rows: Values
    columns: Values
    released: Values
    scale: Values
    laplace: Values
    counts: Values
    known: Values
    second: Values
    covariance: Values
    prior: ConjugatePrior


class State(NamedTuple):
    """theta (q,), variance (); second (q, q), covariance (q, q, q, q) of w; noise: (J, k) variances."""

    theta: Array
    variance: Array
    second: Array
    covariance: Array
    noise: Array


Moments = Callable[[Array, Array, Observed], tuple[Array, Array]]


def observed(
    statistics: HolderStatistics, prior: ConjugatePrior, second: Values, covariance: Values
) -> Observed:
    """What a holder's table of (public) known size leaves unknown: all entries but the constant's."""
    rows, columns = np.triu_indices(statistics.sums.shape[-1])
    free = slice(int(statistics.intercept), None)
    rows, columns = rows[free], columns[free]
    known = np.zeros(statistics.sums.shape[1:])
    if statistics.intercept:
        known[0, 0] = statistics.counts.sum()
    return Observed(
        rows.astype(float),
        columns.astype(float),
        statistics.sums[:, rows, columns],
        statistics.noise[rows, columns],
        np.asarray(statistics.law == "laplace", dtype=float),
        statistics.counts,
        known,
        second,
        covariance,
        prior,
    )


REFUSES = requirements.all_of(requirements.public_counts, requirements.unaveraged, requirements.noisy_moments)


def kernel(moments: Moments) -> Kernel:
    """moments: (key, sums (p, p), observed) -> (second, covariance) of w, in each step."""

    def init(key: Array, data: Observed) -> State:
        # From the noise-naive posterior: far from what was released, chains stay for long where the noise
        # must have been large.
        regression, features, noise = jax.random.split(key, 3)
        sums = nearest_semidefinite(_matrix(jnp.sum(data.released, axis=0), data))
        theta, variance = draw_regression(regression, sums, data.counts.sum(), data.prior)
        second, covariance = moments(features, sums, data)
        return State(theta, variance, second, covariance, _first_noise(noise, data))

    def step(key: Array, state: State, data: Observed) -> State:
        latent, regression, features, noise = jax.random.split(key, 4)
        parts = draw_sums(latent, state, data)
        sums = nearest_semidefinite(_matrix(parts.sum(axis=0), data))
        theta, variance = draw_regression(regression, sums, data.counts.sum(), data.prior)
        second, covariance = moments(features, sums, data)
        # What the repair changed is shared out by the holders' sizes.
        rows, columns = data.rows.astype(int), data.columns.astype(int)
        change = sums[rows, columns] - parts.sum(axis=0)
        parts += jnp.outer(data.counts / data.counts.sum(), change)
        return State(theta, variance, second, covariance, _noise(noise, data.released - parts, data))

    return Kernel(init, step, _sites)


def given_moments(_key: Array, _sums: Array, data: Observed) -> tuple[Array, Array]:
    """Moments that are given, and stay."""
    return jnp.asarray(data.second), jnp.asarray(data.covariance)


def method(
    name: str,
    source: str,
    kernel: Kernel,
    data_of: Callable[[HolderStatistics, ConjugatePrior], Observed],
    refuses: requirements.Check = REFUSES,
) -> Method:
    """The method of one of these kernels."""

    def draw(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
        return run_kernel(kernel, data_of(statistics, prior), run)

    return Method(name, source, refuses, draw, prior_forms.IN_SDS)


def draw_sums(key: Array, state: State, data: Observed) -> Array:
    """(J, k): each holder's exact entries given parameters, what was released, and the noise's variances.

    Drawn again, TRIES times at most, while a sum of squares is negative, as the authors' code does.
    """
    mean, covariance = record_moments(state.second, state.covariance, state.theta, state.variance)
    rows, columns = data.rows.astype(int), data.columns.astype(int)
    factor = root(covariance[rows, columns][:, rows, columns])

    def of_holder(key: Array, released: Values, noise: Array, count: Values) -> Array:
        # A draw from the model, moved by what a noisy copy of it lacks: the factor may be singular.
        before, beside = jax.random.split(key)
        standard = jax.random.normal(before, (*rows.shape, TRIES))
        sums = count * mean[rows, columns][:, None] + jnp.sqrt(count) * factor @ standard
        weight = 1 / jnp.sqrt(noise)[:, None]
        lacking = jnp.where(weight > 0, released[:, None] - sums, 0.0) * weight
        lacking -= jax.random.normal(beside, lacking.shape)
        scaled = count * (factor @ factor.T) * weight.T
        moved = sums + scaled @ jnp.linalg.solve(jnp.eye(len(weight)) + weight * scaled, lacking)
        possible = jnp.all((moved > 0) | (rows != columns)[:, None], axis=0).at[-1].set(True)
        return moved[:, jnp.argmax(possible)]

    keys = jax.random.split(key, len(data.counts))
    return jnp.asarray(jax.vmap(of_holder)(keys, data.released, state.noise, data.counts))


def _matrix(entries: Array, data: Observed) -> Array:
    rows, columns = data.rows.astype(int), data.columns.astype(int)
    return jnp.asarray(data.known).at[rows, columns].set(entries).at[columns, rows].set(entries)


def _noise(key: Array, noise: Values, data: Observed) -> Array:
    scale = jnp.broadcast_to(data.scale, noise.shape)
    finite = jnp.where(jnp.isfinite(scale), scale, 1.0)
    drawn = jnp.where(data.laplace > 0, draw_variances(key, jnp.asarray(noise), finite), finite**2)
    return jnp.where(jnp.isfinite(scale), drawn, jnp.inf)


def _first_noise(key: Array, data: Observed) -> Array:
    scale = jnp.broadcast_to(data.scale, data.released.shape)
    return jnp.where(data.laplace > 0, draw_first_variances(key, scale), scale**2)


def _sites(state: State) -> dict[str, Any]:
    return {"theta": state.theta, "variance": state.variance}


# One for both methods that take moments as given: it is compiled once.
GIVEN_MOMENTS = kernel(given_moments)
