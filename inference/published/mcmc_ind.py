"""MCMC-Ind: every record is a latent variable, with an explicit p(X) (DPBLR II-B3). Exact, and slow.

The authors run NUTS on all records. Here a step proposes a fresh value of each record from the model, which a
mechanism of privacy ε accepts with probability e^−ε at least (Ju et al. 2022); draws the parameters given the
records; and moves the parameters with the records along: the second alone is slow under much noise, the third
under little. To move them, parameters are independent standard numbers and records a linear map of standard
normal ones: with the standard numbers e of all records held, a record u = A e follows when parameters move.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published.base import (
    Kernel,
    Method,
    Run,
    all_of,
    noisy_moments,
    public_counts,
    run_kernel,
    unaveraged,
)
from inference.published.conjugate import (
    ConjugatePrior,
    Values,
    draw_features,
    draw_regression,
    nearest_semidefinite,
)
from inference.sampling import Sampled


class Parameters(NamedTuple):
    """θ (q,), σ² (), the features' mean (d,) and a factor F (d, d) of their covariance F Fᵀ."""

    theta: Array
    variance: Array
    mean: Array
    factor: Array


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
    white = jnp.linalg.solve(parameters.factor, lower)
    full = jnp.linalg.cholesky(white.T @ white)
    from_middle = (parameters.mean - prior.feature_mean) * jnp.sqrt(prior.feature_mean_records)
    mean = full.T @ solve_triangular(lower, from_middle, lower=True)
    return Standard(
        solve_triangular(root, away, lower=True),
        jnp.log(parameters.variance),
        mean,
        jnp.tril(full, -1),
        jnp.log(jnp.diagonal(full)),
    )


def parameters_of(standard: Standard, prior: ConjugatePrior, intercept: bool) -> Parameters:
    """The parameters of standard numbers; without an intercept the features' mean is zero."""
    full = standard.bartlett + jnp.diag(jnp.exp(standard.log_diagonal))
    factor = solve_triangular(full, jnp.linalg.cholesky(prior.scatter).T, lower=True).T
    mean = prior.feature_mean + factor @ standard.mean / jnp.sqrt(prior.feature_mean_records)
    spread = jnp.exp(standard.log_variance / 2) * jnp.linalg.cholesky(prior.theta_covariance)
    return Parameters(
        prior.theta_mean + spread @ standard.theta,
        jnp.exp(standard.log_variance),
        jnp.asarray(mean if intercept else jnp.zeros_like(mean)),
        factor,
    )


def record_map(parameters: Parameters, intercept: bool) -> Array:
    """A (p, p): u = A e, e = (1, standard normals) with an intercept, else standard normals alone."""
    size, first = len(parameters.theta) + 1, int(intercept)
    change = jnp.zeros((size, size)).at[first:-1, first:-1].set(parameters.factor)
    if intercept:
        change = change.at[0, 0].set(1.0).at[1:-1, 0].set(parameters.mean)
    change = change.at[-1].set(parameters.theta @ change[:-1])
    return change.at[-1, -1].set(jnp.sqrt(parameters.variance))


def log_prior(standard: Standard, prior: ConjugatePrior) -> Array:
    """Return the log prior of the numbers that are not normal, with the Jacobians of their logs."""
    freedom = prior.freedom - jnp.arange(len(standard.log_diagonal))
    chi_squares = freedom * standard.log_diagonal - jnp.exp(2 * standard.log_diagonal) / 2
    gamma = -prior.shape * standard.log_variance - prior.rate * jnp.exp(-standard.log_variance)
    return jnp.asarray(chi_squares.sum() + gamma)


def nearby(key: Array, standard: Standard, prior: ConjugatePrior) -> Standard:
    """Return a proposal, reversible under the prior of the normal numbers and symmetric in the others.

    Its size is drawn from orders of magnitude, and so is which numbers move: there is nothing to tune.
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


MOST_RECORDS = 3000
# Moves of the parameters in each step.
MOVES = 10
Carry = tuple[Standard, Array, Array]


class Records(NamedTuple):
    """released: (J, p, p). weight: (p, p), 1 / noise scale on and above the diagonal, 0 where not released or
    exact. laplace: 1 or 0. holders: (n,), whose record it is. counts: (J,)."""

    released: Values
    weight: Values
    laplace: Values
    holders: Values
    counts: Values
    prior: ConjugatePrior

    @property
    def intercept(self) -> bool:
        return self.released.shape[-1] - 1 > self.prior.scatter.shape[0]


class State(NamedTuple):
    """records: (n, p) of u. sums: (J, p, p) of uuᵀ."""

    parameters: Parameters
    records: Array
    sums: Array


def records(statistics: HolderStatistics, prior: ConjugatePrior) -> Records:
    """The kernel's data."""
    scale = np.where(np.triu(statistics.noise) > 0, statistics.noise, np.inf)
    counts = statistics.counts
    holders = np.repeat(np.arange(len(counts), dtype=float), counts.astype(int))
    return Records(
        statistics.sums,
        1 / scale,
        np.asarray(statistics.law == "laplace", dtype=float),
        holders,
        counts,
        prior,
    )


def log_noise(sums: Array, released: Values, data: Records) -> Array:
    """log p(released | sums) of one holder, less a constant."""
    noise = (released - sums) * data.weight
    return -jnp.sum(jnp.where(data.laplace > 0, jnp.abs(noise), noise**2 / 2))


def _init(key: Array, data: Records) -> State:
    given, drawing = jax.random.split(key)
    # The noise-naive posterior's parameters; an entry that is not released is 0.
    parameters = _draw_parameters(given, nearest_semidefinite(jnp.sum(data.released, axis=0)), data)
    drawn = _draw_records(drawing, parameters, data)
    return State(parameters, drawn, _sums(drawn, data))


def _draw_parameters(key: Array, total: Array, data: Records) -> Parameters:
    """Draw the parameters given the sums (p, p) over all records."""
    regression, features = jax.random.split(key)
    count = data.counts.sum()
    theta, variance = draw_regression(regression, total, count, data.prior)
    mean, covariance = draw_features(features, total[:-1, :-1], count, data.prior)
    return Parameters(theta, variance, mean, jnp.linalg.cholesky(covariance))


def _draw_records(key: Array, parameters: Parameters, data: Records) -> Array:
    """(n, p): a fresh u for each record, from the model."""
    standard = jax.random.normal(key, (*data.holders.shape, data.released.shape[-1]))
    if data.intercept:
        standard = standard.at[:, 0].set(1.0)
    return standard @ record_map(parameters, data.intercept).T


def _sums(drawn: Array, data: Records) -> Array:
    squares = drawn[:, :, None] * drawn[:, None, :]
    return jnp.zeros(data.released.shape).at[data.holders.astype(int)].add(squares)


def _step(key: Array, state: State, data: Records) -> State:
    individuals, given, along = jax.random.split(key, 3)
    state = _renewed(individuals, state, data)
    state = state._replace(parameters=_draw_parameters(given, state.sums.sum(axis=0), data))
    return _moved(along, state, data)


def _renewed(key: Array, state: State, data: Records) -> State:
    """Propose for each record in turn a fresh one from the model; its holder's sums decide acceptance."""
    drawing, accepting = jax.random.split(key)
    fresh = _draw_records(drawing, state.parameters, data)
    chance = jnp.log(jax.random.uniform(accepting, data.holders.shape))

    def one(sums: Array, given: tuple[Array, Array, Values, Array]) -> tuple[Array, Array]:
        old, new, holder, log_chance = given
        j = holder.astype(int)
        after = sums[j] + jnp.outer(new, new) - jnp.outer(old, old)
        gain = log_noise(after, data.released[j], data) - log_noise(sums[j], data.released[j], data)
        accepted = log_chance < gain
        return sums.at[j].set(jnp.where(accepted, after, sums[j])), jnp.where(accepted, new, old)

    _, kept = jax.lax.scan(one, state.sums, (state.records, fresh, data.holders, chance))
    # Summed again: rounding errors of n updates do not accumulate over steps.
    return State(state.parameters, kept, _sums(kept, data))


def _moved(key: Array, state: State, data: Records) -> State:
    """Make Metropolis moves of the parameters that take all records along, without a look at any record."""
    start = standard_of(state.parameters, data.prior)
    back = jnp.linalg.inv(record_map(parameters_of(start, data.prior, data.intercept), data.intercept))
    density = jax.vmap(log_noise, in_axes=(0, 0, None))

    def sums_of(change: Array) -> Array:
        return jnp.asarray(jnp.einsum("ab,jbc,dc->jad", change, state.sums, change))

    def log_target(standard: Standard, change: Array) -> Array:
        return log_prior(standard, data.prior) + density(sums_of(change), data.released, data).sum()

    def one(carry: Carry, key: Array) -> tuple[Carry, None]:
        standard, _, log_density = carry
        proposing, accepting = jax.random.split(key)
        proposed = nearby(proposing, standard, data.prior)
        parameters = parameters_of(proposed, data.prior, data.intercept)
        moved = record_map(parameters, data.intercept) @ back
        after = log_target(proposed, moved)
        accepted = jnp.log(jax.random.uniform(accepting)) < after - log_density
        taken = jax.tree.map(partial(jnp.where, accepted), (proposed, moved, after), carry)
        return taken, None

    unmoved = jnp.eye(data.released.shape[-1])
    first = (start, unmoved, log_target(start, unmoved))
    (standard, change, _), _ = jax.lax.scan(one, first, jax.random.split(key, MOVES))
    return State(
        parameters_of(standard, data.prior, data.intercept), state.records @ change.T, sums_of(change)
    )


KERNEL = Kernel(
    _init,
    _step,
    lambda state: {"theta": state.parameters.theta, "variance": state.parameters.variance},
)


def _small(statistics: HolderStatistics) -> str:
    if statistics.counts.sum() <= MOST_RECORDS:
        return ""
    return f"has a latent variable for each record: {MOST_RECORDS} records at most"


def _draw(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    return run_kernel(KERNEL, records(statistics, prior), run)


METHOD = Method("mcmc_ind", all_of(public_counts, unaveraged, noisy_moments, _small), _draw, in_sds=True)
