"""MCMC-normalX: normal features, and every holder's S_j a latent matrix with a Wishart law."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published import prior_forms, requirements
from inference.published.base import Kernel, Method, Run, run_kernel
from inference.published.conjugate import ConjugatePrior, bartlett, inverse_wishart, log_determinant
from inference.published.given_grams import (
    WALK_ACCEPTANCE,
    Released,
    acceptance,
    adapted,
    draw_theta,
    log_cross,
    nearest_semidefinite,
    released,
    starting_variance,
    walk_variance,
)
from inference.sampling import Sampled

SCATTER_ACCEPTANCE = 0.2
MEAN_ACCEPTANCE = 0.3
# Neighbouring states are so alike that only every tenth is kept.
THIN = 10


class State(NamedTuple):
    """One chain. With an intercept S_j is made of the features' scatter about their mean and that mean (B.2).

    mean, covariance: of the features. scatters: (J, d, d), S_j itself without an intercept. means: (J, d), 0
    without one. log_freedom: (J,), log of the Wishart proposals' degrees of freedom beyond d. log_step: of
    σ²'s walk. log_reach: (J,), of the means' walks. time: steps made.
    """

    theta: Array
    variance: Array
    mean: Array
    covariance: Array
    scatters: Array
    means: Array
    log_freedom: Array
    log_step: Array
    log_reach: Array
    time: Array


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
    return log_cross(gram, theta, variance, data) - misfit


def init(key: Array, data: Released) -> State:
    """Start scatters near the released ones, σ² about its prior's, θ drawn given them; Σ moves first."""
    size, holders = data.prior.feature_mean.shape[-1], len(data.sums)
    first, second = jax.random.split(key)
    means, raw = jnp.zeros((holders, size)), data.gram
    if data.has_intercept:
        means = data.gram[:, 0, 1:] / data.counts[:, None]
        raw = data.gram[:, 1:, 1:] - data.counts[:, None, None] * means[:, :, None] * means[:, None, :]
    noise = jnp.sqrt(jnp.diagonal(jnp.asarray(data.variance))[-1 - size : -1].mean())
    scatters = nearest_semidefinite(raw, noise)
    variance = starting_variance(first, data)
    known = data.rows + (jnp.trace(scatters, axis1=1, axis2=2) / size / noise) ** 2
    still = jnp.zeros(())
    return State(
        theta=draw_theta(second, grams(scatters, means, data), variance, data),
        variance=variance,
        mean=jnp.zeros(size),
        covariance=jnp.eye(size),
        scatters=scatters,
        means=means,
        log_freedom=jnp.log(known * size),
        log_step=still,
        log_reach=jnp.zeros(holders),
        time=still,
    )


def draw_features(key: Array, scatters: Array, means: Array, data: Released) -> tuple[Array, Array]:
    """The features' mean and covariance given all scatters: equation 11, or normal-inverse-Wishart."""
    prior = data.prior
    freedom = jnp.asarray(prior.freedom) + data.rows.sum()
    scatter = jnp.asarray(prior.scatter) + scatters.sum(0)
    first, second = jax.random.split(key)
    if not data.has_intercept:
        return jnp.zeros(means.shape[-1]), inverse_wishart(first, scatter, freedom)
    # The prior's mean is one more group of records.
    weights = jnp.append(data.counts, prior.feature_mean_records)
    groups = jnp.concatenate([means, jnp.asarray(prior.feature_mean)[None]])
    middle = weights @ groups / weights.sum()
    apart = groups - middle
    covariance = inverse_wishart(first, scatter + (weights * apart.T) @ apart, freedom)
    noise = jnp.linalg.cholesky(covariance) @ jax.random.normal(second, middle.shape)
    return middle + noise / jnp.sqrt(weights.sum()), covariance


def step(key: Array, state: State, data: Released) -> State:
    """Do one iteration of Algorithm 1."""
    keys = jax.random.split(key, 5)
    mean, covariance = draw_features(keys[0], state.scatters, state.means, data)
    state = move_scatters(keys[1], state._replace(mean=mean, covariance=covariance), data)
    if data.has_intercept:
        state = move_means(keys[2], state, data)
    gram = grams(state.scatters, state.means, data)
    theta = draw_theta(keys[3], gram, state.variance, data)
    variance, chance = walk_variance(keys[4], gram, theta, state.variance, state.log_step, data)
    log_step = adapted(state.log_step, chance, WALK_ACCEPTANCE, state.time, data)
    return state._replace(theta=theta, variance=variance, log_step=log_step, time=state.time + 1)


def move_scatters(key: Array, state: State, data: Released) -> State:
    """Each S_j by a Wishart proposal of mean S_j (A.3), all holders at once."""
    holders, size = state.means.shape
    drawing, accepting = jax.random.split(key)
    freedom = size + jnp.exp(state.log_freedom)
    shapes = jax.vmap(lambda key, freedom: bartlett(key, freedom, size))(
        jax.random.split(drawing, holders), freedom
    )
    factors = jnp.linalg.cholesky(state.scatters)
    proposed_factors = factors @ shapes / jnp.sqrt(freedom)[:, None, None]
    proposed = proposed_factors @ proposed_factors.mT
    log_ratio = (
        log_scatters(proposed, proposed_factors, state, data)
        - log_scatters(state.scatters, factors, state, data)
        + log_proposals(shapes, freedom)
    )
    chance = acceptance(log_ratio)
    taken = jax.random.uniform(accepting, (holders,)) < chance
    return state._replace(
        scatters=jnp.where(taken[:, None, None], proposed, state.scatters),
        # More degrees of freedom are smaller moves.
        log_freedom=-adapted(-state.log_freedom, chance, SCATTER_ACCEPTANCE, state.time, data),
    )


def log_scatters(scatters: Array, factors: Array, state: State, data: Released) -> Array:
    """log p(S_j | Σ) p(released | S_j, …), (J,), less constants; factors: the scatters' lower ones."""
    size = scatters.shape[-1]
    freedom = data.rows - 1 if data.has_intercept else data.rows
    inverse = cho_solve((jnp.linalg.cholesky(state.covariance), True), jnp.eye(size))
    prior = (freedom - size - 1) / 2 * log_determinant(factors) - jnp.einsum(
        "ij,kij->k", inverse, scatters
    ) / 2
    gram = grams(scatters, state.means, data)
    return prior + log_released(gram, state.theta, state.variance, data)


def log_proposals(shapes: Array, freedom: Array) -> Array:
    """log q(S | S′) − log q(S′ | S) where S′ = L AAᵀ Lᵀ / α and S = LLᵀ: it depends on A alone, (J,)."""
    size = shapes.shape[-1]
    inverses = solve_triangular(shapes, jnp.broadcast_to(jnp.eye(size), shapes.shape), lower=True)
    log_shrunk = size * jnp.log(freedom) - log_determinant(shapes)
    traces = freedom**2 * (inverses**2).sum((-2, -1)) - (shapes**2).sum((-2, -1))
    return (freedom - (size + 1) / 2) * log_shrunk - traces / 2


def move_means(key: Array, state: State, data: Released) -> State:
    """Move each holder's feature means by a random walk, as wide as their own uncertainty."""
    holders, size = state.means.shape
    stepping, accepting = jax.random.split(key)
    inverse = cho_solve((jnp.linalg.cholesky(state.covariance), True), jnp.eye(size))
    noise = jnp.diag(1 / jnp.asarray(data.variance)[0, 1:-1])
    counts = data.counts[:, None, None]
    factors = jnp.linalg.cholesky(counts * inverse + counts**2 * noise)
    moves = solve_triangular(factors.mT, jax.random.normal(stepping, (holders, size, 1)))[..., 0]
    proposed = state.means + jnp.exp(state.log_reach)[:, None] * moves

    def log_target(means: Array) -> Array:
        apart = means - state.mean
        prior = -data.counts * jnp.einsum("ji,ik,jk->j", apart, inverse, apart) / 2
        return prior + log_released(grams(state.scatters, means, data), state.theta, state.variance, data)

    chance = acceptance(log_target(proposed) - log_target(state.means))
    taken = jax.random.uniform(accepting, (holders,)) < chance
    return state._replace(
        means=jnp.where(taken[:, None], proposed, state.means),
        log_reach=adapted(state.log_reach, chance, MEAN_ACCEPTANCE, state.time, data),
    )


def sites(state: State) -> dict[str, Array]:
    """θ, σ², and the features' mean and covariance."""
    return {
        "theta": state.theta,
        "variance": state.variance,
        "feature_mean": state.mean,
        "feature_covariance": state.covariance,
    }


KERNEL = Kernel(init, step, sites)


def enough_rows(statistics: HolderStatistics) -> str:
    """S_j must have full rank for its Wishart law to have a density."""
    rows = statistics.counts // statistics.average
    least = statistics.features + statistics.intercept
    return "" if rows.min() >= least else f"needs at least {least} rows of every holder"


def draw(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    """Draws of θ ~ N(m, C), σ² ~ IG(a, b), features ~ N(μ, Σ), Σ ~ IW, μ = 0 without an intercept."""
    longer = run._replace(warmup=run.warmup * THIN, thin=run.thin * THIN)
    return run_kernel(KERNEL, released(statistics, prior, longer.warmup), longer)


METHOD = Method(
    name="mcmc_normalx",
    source="DDPLR Algorithm 1, B.1, B.2",
    refuses=requirements.all_of(
        requirements.gaussian, requirements.public_counts, requirements.noisy_moments, enough_rows
    ),
    draw=draw,
    prior=prior_forms.INDEPENDENT,
)
