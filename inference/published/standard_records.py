"""Parameters as independent standard numbers, and records as a linear map of standard normal ones.

For MCMC-Ind: with the standard numbers e of all records held, a record u = A e follows when parameters move.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular

from inference.published.conjugate import ConjugatePrior


class Parameters(NamedTuple):
    """θ (q,), σ² (), the features' mean (d,) and covariance (d, d)."""

    theta: Array
    variance: Array
    mean: Array
    covariance: Array


class Standard(NamedTuple):
    """Independent a priori: theta (q,) and mean (d,) normal, log_variance (), bartlett (d, d) lower.

    bartlett: normal below the diagonal; its log_diagonal (d,) is half the log of chi-squares.
    """

    theta: Array
    log_variance: Array
    mean: Array
    bartlett: Array
    log_diagonal: Array


def standard_of(parameters: Parameters, prior: ConjugatePrior) -> Standard:
    """The standard numbers of parameters."""
    root = jnp.linalg.cholesky(prior.theta_covariance)
    away = (parameters.theta - prior.theta_mean) / jnp.sqrt(parameters.variance)
    lower = jnp.linalg.cholesky(prior.scatter)
    full = jnp.linalg.cholesky(lower.T @ jnp.linalg.solve(parameters.covariance, lower))
    from_middle = (parameters.mean - prior.feature_mean) * jnp.sqrt(prior.feature_mean_records)
    mean = full.T @ solve_triangular(lower, from_middle, lower=True)
    return Standard(
        solve_triangular(root, away, lower=True),
        jnp.log(parameters.variance),
        mean,
        jnp.tril(full, -1),
        jnp.log(jnp.diagonal(full)),
    )


def _feature_factor(standard: Standard, prior: ConjugatePrior) -> Array:
    """F with covariance F Fᵀ."""
    full = standard.bartlett + jnp.diag(jnp.exp(standard.log_diagonal))
    lower = jnp.linalg.cholesky(prior.scatter)
    return jnp.asarray(solve_triangular(full, lower.T, lower=True).T)


def parameters_of(standard: Standard, prior: ConjugatePrior, intercept: bool) -> Parameters:
    """The parameters of standard numbers; without an intercept the features' mean is zero."""
    factor = _feature_factor(standard, prior)
    mean = prior.feature_mean + factor @ standard.mean / jnp.sqrt(prior.feature_mean_records)
    spread = jnp.exp(standard.log_variance / 2) * jnp.linalg.cholesky(prior.theta_covariance)
    return Parameters(
        prior.theta_mean + spread @ standard.theta,
        jnp.exp(standard.log_variance),
        jnp.asarray(mean if intercept else jnp.zeros_like(mean)),
        factor @ factor.T,
    )


def record_map(standard: Standard, prior: ConjugatePrior, intercept: bool) -> Array:
    """A (p, p): u = A e, e = (1, standard normals) with an intercept, else standard normals alone."""
    parameters = parameters_of(standard, prior, intercept)
    size = len(parameters.theta) + 1
    first = int(intercept)
    change = jnp.zeros((size, size)).at[first:-1, first:-1].set(_feature_factor(standard, prior))
    if intercept:
        change = change.at[0, 0].set(1.0).at[1:-1, 0].set(parameters.mean)
    change = change.at[-1].set(parameters.theta @ change[:-1])
    return change.at[-1, -1].set(jnp.sqrt(parameters.variance))


def log_prior(standard: Standard, prior: ConjugatePrior) -> Array:
    """Of the numbers that are not normal, with the Jacobians of their logs."""
    freedom = prior.freedom - jnp.arange(len(standard.log_diagonal))
    chi_squares = freedom * standard.log_diagonal - jnp.exp(2 * standard.log_diagonal) / 2
    gamma = -prior.shape * standard.log_variance - prior.rate * jnp.exp(-standard.log_variance)
    return jnp.asarray(chi_squares.sum() + gamma)


def nearby(key: Array, standard: Standard, prior: ConjugatePrior) -> Standard:
    """A proposal, reversible under the prior of the normal numbers and symmetric in the others.

    Its size is drawn from orders of magnitude, and so is which numbers move: nothing has to be tuned.
    """
    sizes, which, *keys = jax.random.split(key, 7)
    size = 10.0 ** jax.random.uniform(sizes, minval=-2.0, maxval=0.0)
    moves = jax.random.randint(which, (), 0, 4)  # 0: all; 1: θ; 2: σ²; 3: the features.

    def turned(key: Array, value: Array, mine: int) -> Array:
        angle = jnp.where((moves == 0) | (moves == mine), size, 0.0)
        fresh = jax.random.normal(key, value.shape)
        return jnp.sqrt(1 - angle**2) * value + angle * fresh

    def walked(key: Array, value: Array, mine: int, spread: Array) -> Array:
        step = jnp.where((moves == 0) | (moves == mine), size, 0.0) * spread
        return value + step * jax.random.normal(key, value.shape)

    freedom = prior.freedom - jnp.arange(len(standard.log_diagonal))
    return Standard(
        turned(keys[0], standard.theta, 1),
        walked(keys[1], standard.log_variance, 2, jnp.sqrt(1 / jnp.asarray(prior.shape))),
        turned(keys[2], standard.mean, 3),
        jnp.tril(turned(keys[3], standard.bartlett, 3), -1),
        walked(keys[4], standard.log_diagonal, 3, 1 / jnp.sqrt(2 * freedom)),
    )
