"""MCMC-B&S, DDPLR appendix C.1 after Bernstein & Sheldon (2019).

Every holder's (S, z, u) a latent vector of dimension D that is normal by the CLT.

Dense, as published: O(D³) = O(d⁶) an iteration. The projection of the summed latent matrix to the nearest
positive semidefinite one is needed because a normal draw may be indefinite; the paper does not mention it.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular

from benchmarks.papers.noisy_as_exact import squares
from inference.likelihoods.holders import HolderStatistics
from inference.published.base import (
    Kernel,
    Method,
    Run,
    gaussian,
    noisy_moments,
    public_counts,
    run_kernel,
)
from inference.published.conjugate import ConjugatePrior, inverse_wishart, nearest_semidefinite
from inference.published.mcmc_fixeds import Released, released
from inference.sampling.nuts import Sampled

# Neighbouring states are so alike that only every tenth is kept.
THIN = 10


class State(NamedTuple):
    """covariance: of the features. total: (p, p), the latent Σ_j Σ vvᵀ, v = (x, y)."""

    theta: Array
    variance: Array
    covariance: Array
    total: Array


def init(key: Array, data: Released) -> State:
    """All else drawn given what was released, every direction as wide as the noise at least.

    σ² moves by a factor of about 1 + √(2/n) an iteration: a chain that begins far too small stays there.
    """
    size = data.sums.shape[-1]
    widest = jnp.sqrt(len(data.sums) * size * jnp.asarray(data.variance).max())
    total = nearest_semidefinite(data.sums.sum(0), widest)
    empty = State(jnp.zeros(size - 1), jnp.ones(()), jnp.eye(size - 1), total)
    return draw_parameters(key, empty, data)


def step(key: Array, state: State, data: Released) -> State:
    """One iteration of appendix C.1."""
    first, second = jax.random.split(key)
    return draw_parameters(second, state._replace(total=draw_total(first, state, data)), data)


def draw_total(key: Array, state: State, data: Released) -> Array:
    """Σ_j ss_j given θ, σ², Σ and what was released."""
    moments = second_moments(state)
    factor, covariance = jnp.linalg.cholesky(moments), fourth_moments(moments)
    keys = jax.random.split(key, len(data.sums))

    def latent(holder: tuple[Array, Array, Array]) -> Array:
        return draw_latent(*holder, moments, factor, covariance, data)

    return nearest_semidefinite(jax.lax.map(latent, (keys, data.sums, data.rows)).sum(0))


def draw_latent(
    key: Array, released: Array, rows: Array, moments: Array, factor: Array, covariance: Array, data: Released
) -> Array:
    """One holder's Σ vvᵀ, (p, p): a draw from its prior law, corrected by what was released.

    A draw from N(nμ, nC) and one of the noise, then the gain nC (nC + V)⁻¹ on what they miss: the same law as
    the published one with C's inverse, which C may be too close to singular for.
    """
    first, second = jax.random.split(key)
    rows_of, columns_of = np.triu_indices(len(moments))
    entries = lambda matrix: matrix[rows_of, columns_of]  # noqa: E731
    noise = entries(jnp.asarray(data.variance))
    white = jnp.triu(jax.random.normal(first, moments.shape))
    # LZLᵀ, Z symmetric with variances 1 and 2, has the covariance of vvᵀ.
    symmetric = jnp.triu(white, 1) + jnp.triu(white, 1).T + jnp.sqrt(2.0) * jnp.diag(jnp.diag(white))
    guess = entries(rows * moments + jnp.sqrt(rows) * factor @ symmetric @ factor.T)
    missed = entries(released) - guess - jnp.sqrt(noise) * jax.random.normal(second, noise.shape)
    lower = jnp.linalg.cholesky(rows * covariance + jnp.diag(noise))
    drawn = guess + rows * covariance @ cho_solve((lower, True), missed)
    upper = jnp.zeros_like(moments).at[rows_of, columns_of].set(drawn)
    return upper + jnp.triu(upper, 1).T


def second_moments(state: State) -> Array:
    """Ω = E vvᵀ, (p, p), of one record v = (x, y)."""
    cross = state.covariance @ state.theta
    square = state.theta @ cross + state.variance
    return jnp.block([[state.covariance, cross[:, None]], [cross[None], square[None, None]]])


def fourth_moments(moments: Array) -> Array:
    """Covariance (D, D) of vvᵀ's upper triangle, v normal (Isserlis)."""
    i, j = np.triu_indices(len(moments))
    at = lambda rows, columns: moments[rows[:, None], columns[None]]  # noqa: E731
    return at(i, i) * at(j, j) + at(i, j) * at(j, i)


def draw_parameters(key: Array, state: State, data: Released) -> State:
    """Σ, σ², θ given the total, as if it were that of n exact records: conjugate."""
    prior, rows = data.prior, data.rows.sum()
    gram, cross, square = state.total[:-1, :-1], state.total[:-1, -1], state.total[-1, -1]
    first, second, third = jax.random.split(key, 3)
    covariance = inverse_wishart(first, jnp.asarray(prior.scatter) + gram, jnp.asarray(prior.freedom) + rows)
    inverse = jnp.linalg.inv(jnp.asarray(prior.theta_covariance))
    factor = jnp.linalg.cholesky(inverse + gram)
    shift = inverse @ prior.theta_mean + cross
    mean = cho_solve((factor, True), shift)
    rate = prior.rate + (square + prior.theta_mean @ inverse @ prior.theta_mean - mean @ shift) / 2
    variance = jnp.maximum(rate, prior.rate) / jax.random.gamma(second, prior.shape + rows / 2)
    noise = solve_triangular(factor.T, jax.random.normal(third, mean.shape))
    return State(mean + jnp.sqrt(variance) * noise, variance, covariance, state.total)


def sites(state: State) -> dict[str, Array]:
    """θ, σ², and the features' covariance."""
    return {"theta": state.theta, "variance": state.variance, "feature_covariance": state.covariance}


KERNEL = Kernel(init, step, sites)


def draw(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    """Draws of θ | σ² ~ N(m, σ² C), σ² ~ IG(a, b), centred features ~ N(0, Σ), Σ ~ IW."""
    longer = run._replace(warmup=run.warmup * THIN, thin=run.thin * THIN)
    return run_kernel(KERNEL, released(statistics, prior), longer)


def no_intercept(statistics: HolderStatistics) -> str:
    """Require centred tables: no column of ones."""
    return "is for centred tables without an intercept" if statistics.intercept else ""


METHOD = Method("mcmc_bs", (gaussian, no_intercept, public_counts, squares, noisy_moments), draw, in_sds=True)
