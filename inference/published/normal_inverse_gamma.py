"""Draws of (θ, σ²) given sums of squares, under the normal-inverse-gamma prior (DPBLR eq. 1)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from inference.published.conjugate import ConjugatePrior, Values


def draw_regression(key: Array, sums: Values, count: Values, prior: ConjugatePrior) -> tuple[Array, Array]:
    """θ (q,) and σ² (): sums (p, p) of uuᵀ, semidefinite, of `count` records.

    θ | σ² ~ N(theta_mean, σ² · theta_covariance): the prior is in units of the residual variance.
    """
    precision_before = jnp.linalg.inv(prior.theta_covariance)
    precision = sums[:-1, :-1] + precision_before
    shift = sums[:-1, -1] + precision_before @ prior.theta_mean
    lower = jnp.linalg.cholesky(precision)
    mean = jax.scipy.linalg.cho_solve((lower, True), shift)
    squares = sums[-1, -1] + prior.theta_mean @ precision_before @ prior.theta_mean - mean @ shift
    normal, gamma = jax.random.split(key)
    rate = prior.rate + jnp.maximum(squares, 0.0) / 2
    variance = rate / jax.random.gamma(gamma, prior.shape + count / 2)
    return mean + jnp.sqrt(variance) * normal_given_factor(normal, lower), variance


def normal_given_factor(key: Array, lower: Array) -> Array:
    """A draw of N(0, precision⁻¹), precision = lower lowerᵀ."""
    standard = jax.random.normal(key, lower.shape[:1])
    return jnp.asarray(jax.scipy.linalg.solve_triangular(lower.T, standard, lower=False))
