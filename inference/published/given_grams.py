"""The input of DDPLR's kernels, and the part of its model that remains once every S_j = XᵀX is given.

z_j | S_j, θ, σ² is normal with mean S_j θ and covariance σ² S_j (Proposition 3.1 and A.2, A.4); the released
z_j has its noise on top.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published.conjugate import ConjugatePrior, log_determinant


class Released(NamedTuple):
    """Statistics of J holders, q columns, p = q + 1.

    sums: (J, p, p) noisy Σ uuᵀ. variance: (p, p) of their noise. counts, rows: (J,) records, and rows of the
    tables after averaging. warmup: for how many steps a chain adapts its proposals.
    """

    sums: Array
    variance: Array
    counts: Array
    rows: Array
    warmup: Array
    prior: ConjugatePrior

    @property
    def gram(self) -> Array:
        return self.sums[:, :-1, :-1]

    @property
    def cross(self) -> Array:
        return self.sums[:, :-1, -1]

    @property
    def cross_variance(self) -> Array:
        return self.variance[:-1, -1]

    @property
    def has_intercept(self) -> bool:
        return self.sums.shape[-1] - 1 > self.prior.feature_mean.shape[-1]


def released(statistics: HolderStatistics, prior: ConjugatePrior, warmup: int = 0) -> Released:
    """The arrays of one set of statistics."""
    arrays: tuple[Any, ...] = (
        statistics.sums,
        statistics.noise**2,
        statistics.counts,
        np.floor(statistics.counts / statistics.average),
        np.float64(warmup),
        prior,
    )
    return Released(*arrays)


WALK_ACCEPTANCE = 0.44


def nearest_semidefinite(matrices: Array, floor: Array | float = 0.0) -> Array:
    """The symmetric matrices (…, q, q) with their eigenvalues raised to `floor` (Higham 1988)."""
    values, vectors = jnp.linalg.eigh(matrices)
    return jnp.einsum("...ik,...k,...jk->...ij", vectors, jnp.maximum(values, floor), vectors)


def cross_factors(gram: Array, variance: Array, noise: Array) -> Array:
    """Lower factors (…, q, q) of z's covariance σ² S + diag(noise)."""
    return jnp.linalg.cholesky(variance * gram + jnp.diag(noise))


def log_cross(gram: Array, theta: Array, variance: Array, data: Released) -> Array:
    """log p(released z_j | S_j, θ, σ²), (J,), less constants."""
    factors = cross_factors(gram, variance, data.cross_variance)
    residual = data.cross - gram @ theta
    white = solve_triangular(factors, residual[..., None], lower=True)[..., 0]
    return -(white**2).sum(-1) / 2 - log_determinant(factors) / 2


def theta_posterior(gram: Array, variance: Array, data: Released) -> tuple[Array, Array]:
    """θ | S_j, σ²: mean (q,) and the lower factor (q, q) of its precision."""
    prior: ConjugatePrior = data.prior
    factors = cross_factors(gram, variance, data.cross_variance)
    white_gram = solve_triangular(factors, gram, lower=True)
    white_cross = solve_triangular(factors, data.cross[..., None], lower=True)[..., 0]
    inverse = jnp.linalg.inv(jnp.asarray(prior.theta_covariance))
    precision = inverse + jnp.einsum("jki,jkl->il", white_gram, white_gram)
    shift = inverse @ prior.theta_mean + jnp.einsum("jki,jk->i", white_gram, white_cross)
    factor = jnp.linalg.cholesky(precision)
    return cho_solve((factor, True), shift), factor


def draw_theta(key: Array, gram: Array, variance: Array, data: Released) -> Array:
    """A draw of θ | S_j, σ² (equation 12)."""
    mean, factor = theta_posterior(gram, variance, data)
    return mean + solve_triangular(factor.T, jax.random.normal(key, mean.shape))


def starting_variance(key: Array, data: Released) -> Array:
    """σ² within a few factors of its prior's mode, different for each chain."""
    return data.prior.rate / (data.prior.shape + 1) * jnp.exp(jax.random.normal(key))


def walk_variance(
    key: Array, gram: Array, theta: Array, variance: Array, log_step: Array, data: Released
) -> tuple[Array, Array]:
    """σ² after a random walk's step on log σ², and the probability with which it was accepted."""
    stepping, accepting = jax.random.split(key)
    proposed = variance * jnp.exp(jnp.exp(log_step) * jax.random.normal(stepping))

    def log_target(variance: Array) -> Array:
        # The inverse-gamma density with the Jacobian of log σ².
        prior = -data.prior.shape * jnp.log(variance) - data.prior.rate / variance
        return prior + log_cross(gram, theta, variance, data).sum()

    chance = acceptance(log_target(proposed) - log_target(variance))
    return jnp.where(jax.random.uniform(accepting) < chance, proposed, variance), chance


def acceptance(log_ratio: Array) -> Array:
    """min(1, ratio); 0 where a proposal's density could not be computed."""
    return jnp.where(jnp.isnan(log_ratio), 0.0, jnp.exp(jnp.minimum(log_ratio, 0.0)))


def adapted(value: Array, chance: Array, target: float, time: Array, data: Released) -> Array:
    """A proposal's log scale nearer to the target acceptance (Andrieu & Thoms 2008); still after warm-up."""
    gain = jnp.where(time < data.warmup, 2 * (time + 1.0) ** -0.6, 0.0)
    return value + gain * (chance - target)
