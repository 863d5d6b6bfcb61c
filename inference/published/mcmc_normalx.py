"""MCMC-normalX: normal features, every S_j a latent matrix with a Wishart law (Algorithm 1, B.1 and B.2)."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular

from inference.likelihoods.holders import HolderStatistics
from inference.published import base, conjugate, mcmc_fixeds
from inference.published.base import Method, Run
from inference.published.conjugate import ConjugatePrior
from inference.published.mcmc_fixeds import Released, State
from inference.sampling.nuts import Sampled

SCATTER_ACCEPTANCE = 0.2
MEAN_ACCEPTANCE = 0.3
# Neighbouring states are so alike that only every tenth is kept.
THIN = 10


class Latent(NamedTuple):
    """Of what S_j is made; with an intercept, of the features' scatter about their mean and that mean (B.2).

    mean, covariance: of the features. scatters: (J, d, d), S_j itself without an intercept. means: (J, d), 0
    without one. log_freedom: (J,), log of the Wishart proposals' degrees of freedom beyond d. log_reach:
    (J,), of the means' walks.
    """

    mean: Array
    covariance: Array
    scatters: Array
    means: Array
    log_freedom: Array
    log_reach: Array


def grams(scatters: Array, means: Array, data: Released) -> Array:
    """S_j (J, q, q) of X, with its column of ones where there is an intercept."""
    if not data.has_intercept:
        return scatters
    ones = jnp.concatenate([jnp.ones((*means.shape[:-1], 1)), means], -1)
    outer = data.counts[:, None, None] * ones[:, :, None] * ones[:, None, :]
    return outer.at[:, 1:, 1:].add(scatters)


def log_released(gram: Array, theta: Array, variance: Array, data: Released) -> Array:
    """log p(released S_j and z_j | S_j, θ, σ²), (J,), less constants."""
    weights = 1 / jnp.asarray(data.variance)[:-1, :-1]
    # An entry and its mirror image are one number; the number of records is known.
    weights = weights * (jnp.eye(len(weights)) + 1) / 2
    if data.has_intercept:
        weights = weights.at[0, 0].set(0.0)
    misfit = (weights * (data.gram - gram) ** 2).sum((-2, -1)) / 2
    return mcmc_fixeds.log_cross(gram, theta, variance, data) - misfit


def start(data: Released) -> Latent:
    """Start scatters near the released ones; the features' mean and covariance move first."""
    size, holders = data.prior.feature_mean.shape[-1], len(data.sums)
    means, raw = jnp.zeros((holders, size)), data.gram
    if data.has_intercept:
        means = data.gram[:, 0, 1:] / data.counts[:, None]
        raw = data.gram[:, 1:, 1:] - data.counts[:, None, None] * means[:, :, None] * means[:, None, :]
    noise = jnp.sqrt(jnp.diagonal(jnp.asarray(data.variance))[-1 - size : -1].mean())
    scatters = conjugate.nearest_semidefinite(raw, noise)
    known = data.rows + (jnp.trace(scatters, axis1=1, axis2=2) / size / noise) ** 2
    return Latent(jnp.zeros(size), jnp.eye(size), scatters, means, jnp.log(known * size), jnp.zeros(holders))


def move(key: Array, state: State, data: Released) -> State:
    """Move the features' law (equation 11, or normal-inverse-Wishart) and every S_j."""
    features, scatters, means = jax.random.split(key, 3)
    latent = state.latent
    gram = grams(latent.scatters, latent.means, data).sum(0)
    law = conjugate.draw_features(features, gram, data.counts.sum(), data.prior, data.rows.sum())
    state = state._replace(latent=latent._replace(mean=law[0], covariance=law[1]))
    state = _move_scatters(scatters, state, data)
    return _move_means(means, state, data) if data.has_intercept else state


def _move_scatters(key: Array, state: State, data: Released) -> State:
    """Each S_j by a Wishart proposal of mean S_j (A.3), all holders at once."""
    latent = state.latent
    holders, size = latent.means.shape
    drawing, accepting = jax.random.split(key)
    freedom = size + jnp.exp(latent.log_freedom)
    shapes = jax.vmap(lambda key, freedom: conjugate.bartlett(key, freedom, size))(
        jax.random.split(drawing, holders), freedom
    )
    factors = jnp.linalg.cholesky(latent.scatters)
    proposed_factors = factors @ shapes / jnp.sqrt(freedom)[:, None, None]
    proposed = proposed_factors @ proposed_factors.mT
    log_ratio = (
        log_scatters(proposed, proposed_factors, state, data)
        - log_scatters(latent.scatters, factors, state, data)
        + log_proposals(shapes, freedom)
    )
    taken, chance = mcmc_fixeds.accepted(accepting, log_ratio)
    scatters = jnp.where(taken[:, None, None], proposed, latent.scatters)
    # More degrees of freedom are smaller moves.
    log_freedom = -mcmc_fixeds.adapted(-latent.log_freedom, chance, SCATTER_ACCEPTANCE, state.time, data)
    return state._replace(latent=latent._replace(scatters=scatters, log_freedom=log_freedom))


def log_scatters(scatters: Array, factors: Array, state: State, data: Released) -> Array:
    """log p(S_j | Σ) p(released | S_j, …), (J,), less constants; factors: the scatters' lower ones."""
    latent, size = state.latent, scatters.shape[-1]
    freedom = data.rows - 1 if data.has_intercept else data.rows
    inverse = cho_solve((jnp.linalg.cholesky(latent.covariance), True), jnp.eye(size))
    trace = jnp.einsum("ij,kij->k", inverse, scatters)
    prior = (freedom - size - 1) / 2 * conjugate.log_determinant(factors) - trace / 2
    return prior + log_released(grams(scatters, latent.means, data), state.theta, state.variance, data)


def log_proposals(shapes: Array, freedom: Array) -> Array:
    """log q(S | S′) − log q(S′ | S) where S′ = L AAᵀ Lᵀ / α and S = LLᵀ: it depends on A alone, (J,)."""
    size = shapes.shape[-1]
    inverses = solve_triangular(shapes, jnp.broadcast_to(jnp.eye(size), shapes.shape), lower=True)
    log_shrunk = size * jnp.log(freedom) - conjugate.log_determinant(shapes)
    traces = freedom**2 * (inverses**2).sum((-2, -1)) - (shapes**2).sum((-2, -1))
    return (freedom - (size + 1) / 2) * log_shrunk - traces / 2


def _move_means(key: Array, state: State, data: Released) -> State:
    """Move each holder's feature means by a random walk, as wide as their own uncertainty."""
    latent = state.latent
    holders, size = latent.means.shape
    stepping, accepting = jax.random.split(key)
    inverse = cho_solve((jnp.linalg.cholesky(latent.covariance), True), jnp.eye(size))
    noise = jnp.diag(1 / jnp.asarray(data.variance)[0, 1:-1])
    counts = data.counts[:, None, None]
    factors = jnp.linalg.cholesky(counts * inverse + counts**2 * noise)
    moves = solve_triangular(factors.mT, jax.random.normal(stepping, (holders, size, 1)))[..., 0]
    proposed = latent.means + jnp.exp(latent.log_reach)[:, None] * moves

    def log_target(means: Array) -> Array:
        apart = means - latent.mean
        prior = -data.counts * jnp.einsum("ji,ik,jk->j", apart, inverse, apart) / 2
        gram = grams(latent.scatters, means, data)
        return prior + log_released(gram, state.theta, state.variance, data)

    taken, chance = mcmc_fixeds.accepted(accepting, log_target(proposed) - log_target(latent.means))
    means = jnp.where(taken[:, None], proposed, latent.means)
    log_reach = mcmc_fixeds.adapted(latent.log_reach, chance, MEAN_ACCEPTANCE, state.time, data)
    return state._replace(latent=latent._replace(means=means, log_reach=log_reach))


KERNEL = mcmc_fixeds.kernel(start, move, lambda latent, data: grams(latent.scatters, latent.means, data))


def _enough_rows(statistics: HolderStatistics) -> str:
    """Require rows for S_j of full rank, so that its Wishart law has a density."""
    rows = statistics.counts // statistics.average
    least = statistics.features + statistics.intercept
    return "" if rows.min() >= least else f"needs at least {least} rows of every holder"


def _draw(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    """Draws of θ ~ N(m, C), σ² ~ IG(a, b), features ~ N(μ, Σ), Σ ~ IW, μ = 0 without an intercept."""
    longer = run._replace(warmup=run.warmup * THIN, thin=run.thin * THIN)
    return base.run_kernel(KERNEL, mcmc_fixeds.released(statistics, prior, longer.warmup), longer)


METHOD = Method("mcmc_normalx", (base.gaussian, base.public_counts, base.noisy_moments, _enough_rows), _draw)
