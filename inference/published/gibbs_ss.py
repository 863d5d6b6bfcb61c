"""Gibbs-SS: a Gibbs sampler over holders' exact statistics, in two forms (DPBLR II-B4, 5).

The sums of records' uuᵀ, u = (w, y), y = θᵀw + N(0, σ²), are taken as normal, which needs their mean and
covariance; Laplace noise is normal noise of random variance (after Park and Casella 2008). The forms differ
in the moments of the features. Gibbs-SS-Noisy: the holders' own, released with noise. The authors' published
code passes on the exact fourth moments, and their sums for means: neither private nor described in the paper.
Here the moments are the released ones. Gibbs-SS-Update: the features' mean and covariance are drawn with the
other parameters.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.likelihoods.holders import HolderStatistics, Matrix
from inference.published import base, conjugate
from inference.published.conjugate import ConjugatePrior, Values
from inference.sampling.nuts import Sampled


def normal_moments(mean: Values, covariance: Values, columns: int) -> tuple[Array, Array]:
    """Return E[wwᵀ] (q, q) and Cov(w_i w_j, w_k w_l) (q, q, q, q) of x ~ N(mean, covariance).

    w = (1, x), or x if columns = d. Isserlis; METHODS 4.2.
    """
    constants = columns - len(mean)
    middle = jnp.concatenate([jnp.ones(constants), mean])
    second = jnp.outer(middle, middle).at[constants:, constants:].add(covariance)
    four = jnp.einsum("i,j,k,l", middle, middle, middle, middle)
    pairs = jnp.einsum("ik,jl->ijkl", second, second)
    return second, pairs + pairs.swapaxes(2, 3) - 2 * four


def record_moments(second: Array, covariance: Array, theta: Array, variance: Array) -> tuple[Array, Array]:
    """Return E[uuᵀ] (p, p) and Cov(u_i u_j, u_k u_l) (p, p, p, p) from w's; only two moments of w matter."""
    q = len(theta)
    mean = jnp.zeros((q + 1, q + 1)).at[:q, :q].set(second).at[q, q].set(variance)
    # First (w, ε), ε ~ N(0, σ²), then y = θᵀw + ε.
    four = jnp.zeros((q + 1,) * 4).at[:q, :q, :q, :q].set(covariance)
    once = variance * second
    four = four.at[:q, q, :q, q].add(once).at[:q, q, q, :q].add(once)
    four = four.at[q, :q, :q, q].add(once).at[q, :q, q, :q].add(once)
    four = four.at[q, q, q, q].add(2 * variance**2)
    change = jnp.eye(q + 1).at[q, :q].set(theta)
    return change @ mean @ change.T, jnp.einsum(
        "ijkl,ai,bj,ck,dl->abcd", four, change, change, change, change, optimize="greedy"
    )


def draw_variances(key: Array, noise: Array, scale: Array) -> Array:
    """ω² given the noise; 1/ω² ~ inverse Gaussian(mean 1/(b|noise|), shape 1/b²). All of one shape.

    1/Y = Y/μ² + χ²/λ in law for Y ~ IG(μ, λ), so ω² is IG(b|noise|, noise²) + b²χ²: finite for noise → 0.
    """
    smaller, which, square = jax.random.split(key, 3)
    size = jnp.maximum(jnp.abs(noise), 1e-12 * scale)
    # Michael, Schucany, Haas 1976; the smaller root without cancellation.
    t = scale / (2 * size) * jax.random.normal(smaller, size.shape) ** 2
    ratio = 1 + t + jnp.sqrt(t * (t + 2))
    takes_smaller = jax.random.uniform(which, size.shape) * (1 + 1 / ratio) < 1
    inverse_gaussian = scale * size * jnp.where(takes_smaller, 1 / ratio, ratio)
    return inverse_gaussian + scale**2 * jax.random.normal(square, size.shape) ** 2


# How often sums are redrawn while a sum of squares is negative.
TRIES = 10


class Observed(NamedTuple):
    """k entries (rows, columns) of the sums, J holders; `known` (p, p): the sums that have no noise.

    released: (J, k), 0 if not released. scale: (k,), b of Laplace noise, sd of Gaussian noise, inf if not
    released. laplace: 1 or 0. counts: (J,). second, covariance: the released moments of w, if any.
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

    @property
    def entries(self) -> tuple[Array, Array]:
        return jnp.asarray(self.rows, int), jnp.asarray(self.columns, int)


class State(NamedTuple):
    """theta (q,), variance (); second (q, q), covariance (q, q, q, q) of w; noise: (J, k) variances."""

    theta: Array
    variance: Array
    second: Array
    covariance: Array
    noise: Array


def observed(statistics: HolderStatistics, prior: ConjugatePrior) -> Observed:
    """Return the unknown entries of a holder's table of (public) known size: all but the constant's."""
    rows, columns = np.triu_indices(statistics.sums.shape[-1])
    free = slice(int(statistics.intercept), None)
    rows, columns = rows[free], columns[free]
    known = np.zeros(statistics.sums.shape[1:])
    if statistics.intercept:
        known[0, 0] = statistics.counts.sum()
    given: tuple[Values, Values] = (np.zeros(()), np.zeros(()))
    if statistics.fourth_moments is not None:
        mean_square = statistics.gram.sum(axis=0) / statistics.counts.sum()
        fourth = statistics.fourth_moments
        given = repaired(fourth[0, 0] if statistics.intercept else mean_square, fourth, statistics.intercept)
    return Observed(
        rows.astype(float),
        columns.astype(float),
        statistics.sums[:, rows, columns],
        statistics.noise[rows, columns],
        np.asarray(statistics.law == "laplace", dtype=float),
        statistics.counts,
        known,
        *given,
        prior,
    )


def kernel(moments: Callable[[Array, Array, Observed], tuple[Array, Array]]) -> base.Kernel:
    """moments: (key, sums (p, p), observed) -> (second, covariance) of w, in each step."""

    def drawn(key: Array, sums: Array, noise: Array, data: Observed) -> State:
        regression, features = jax.random.split(key)
        theta, variance = conjugate.draw_regression(regression, sums, data.counts.sum(), data.prior)
        return State(theta, variance, *moments(features, sums, data), noise)

    def init(key: Array, data: Observed) -> State:
        # Chains start from the noise-naive posterior: far from the released values they would stay for long,
        # because the noise must have been large there.
        sums = conjugate.nearest_semidefinite(_matrix(jnp.sum(data.released, axis=0), data))
        noise = (1 + data.laplace) * jnp.asarray(data.scale) ** 2
        return drawn(key, sums, jnp.broadcast_to(noise, data.released.shape), data)

    def step(key: Array, state: State, data: Observed) -> State:
        latent, parameters, noise = jax.random.split(key, 3)
        parts = draw_sums(latent, state, data)
        sums = conjugate.nearest_semidefinite(_matrix(parts.sum(axis=0), data))
        # The change by the repair is divided among the holders by their sizes.
        change = sums[data.entries] - parts.sum(axis=0)
        parts += jnp.outer(data.counts / data.counts.sum(), change)
        return drawn(parameters, sums, _noise(noise, data.released - parts, data), data)

    return base.Kernel(init, step, lambda state: {"theta": state.theta, "variance": state.variance})


def draw_sums(key: Array, state: State, data: Observed) -> Array:
    """Draw each holder's exact entries (J, k) given parameters, the release, and the noise's variances.

    Drawn again, TRIES times at most, while a sum of squares is negative, as the authors' code does.
    """
    mean, covariance = record_moments(state.second, state.covariance, state.theta, state.variance)
    rows, columns = data.entries
    factor = root(covariance[rows, columns][:, rows, columns])

    def of_holder(key: Array, released: Values, noise: Array, count: Values) -> Array:
        # A draw from the model, shifted by its noisy copy's residual: the factor may be singular.
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


def root(matrix: Array) -> Array:
    """F with F Fᵀ = the nearest semidefinite matrix."""
    values, vectors = jnp.linalg.eigh(matrix)
    return jnp.asarray(vectors * jnp.sqrt(jnp.maximum(values, 0.0)))


def _matrix(entries: Array, data: Observed) -> Array:
    rows, columns = data.entries
    return jnp.asarray(data.known).at[rows, columns].set(entries).at[columns, rows].set(entries)


def _noise(key: Array, noise: Values, data: Observed) -> Array:
    scale = jnp.broadcast_to(data.scale, noise.shape)
    finite = jnp.where(jnp.isfinite(scale), scale, 1.0)
    drawn = jnp.where(data.laplace > 0, draw_variances(key, jnp.asarray(noise), finite), finite**2)
    return jnp.where(jnp.isfinite(scale), drawn, jnp.inf)


def repaired(second: Matrix, fourth: Matrix, intercept: bool) -> tuple[Matrix, Matrix]:
    """E[wwᵀ] (q, q) and Cov(w_i w_j, w_k w_l) (q, q, q, q), both semidefinite; a constant stays one."""
    q = len(second)
    covariance = fourth - np.einsum("ij,kl->ijkl", second, second)
    covariance = _nearest(covariance.reshape(q**2, q**2)).reshape(fourth.shape)
    if not intercept:
        return _nearest(second), covariance
    mean = second[0]
    centred = second - np.outer(mean, mean)
    return np.outer(mean, mean) + _nearest(centred), covariance


def _nearest(matrix: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def _drawn_moments(key: Array, sums: Array, data: Observed) -> tuple[Array, Array]:
    gram = sums[:-1, :-1]
    mean, covariance = conjugate.draw_features(key, gram, data.counts.sum(), data.prior)
    return normal_moments(mean, covariance, len(gram))


GIVEN_MOMENTS = kernel(lambda _key, _sums, data: (jnp.asarray(data.second), jnp.asarray(data.covariance)))
DRAWN_MOMENTS = kernel(_drawn_moments)


def _has_moments(statistics: HolderStatistics) -> str:
    if statistics.fourth_moments is not None:
        return ""
    return "needs the features' fourth moments, which were not released; gibbs_ss_update does not"


def _method(name: str, kernel: base.Kernel, *refuses: base.Check) -> base.Method:
    def draw(statistics: HolderStatistics, prior: ConjugatePrior, run: base.Run) -> Sampled:
        return base.run_kernel(kernel, observed(statistics, prior), run)

    checks = (*refuses, base.public_counts, base.unaveraged, base.noisy_moments)
    return base.Method(name, checks, draw, in_sds=True)


NOISY = _method("gibbs_ss_noisy", GIVEN_MOMENTS, _has_moments)
UPDATE = _method("gibbs_ss_update", DRAWN_MOMENTS)
