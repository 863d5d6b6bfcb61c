"""MCMC-Ind: every record is a latent variable, with an explicit p(X) (DPBLR II-B3). Exact, and slow.

The authors run NUTS on all records. Here a step proposes each record anew from the model, which a mechanism
of privacy ε accepts with probability e^−ε at least (Ju et al. 2022); draws the parameters given the records;
and moves the parameters with the records along (`standard_records.py`): the second alone is slow under much
noise, the third under little.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

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
from inference.published.normal_inverse_gamma import draw_regression
from inference.published.normal_inverse_wishart import draw_features
from inference.published.standard_records import (
    Parameters,
    Standard,
    log_prior,
    nearby,
    parameters_of,
    record_map,
    standard_of,
)
from inference.sampling import Sampled

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
    regression, features, drawing = jax.random.split(key, 3)
    count = data.counts.sum()
    # The noise-naive posterior's parameters; an entry that is not released is 0.
    sums = nearest_semidefinite(jnp.sum(data.released, axis=0))
    theta, variance = draw_regression(regression, sums, count, data.prior)
    mean, covariance = draw_features(features, sums[:-1, :-1], count, data.prior)
    parameters = Parameters(theta, variance, mean, covariance)
    drawn = _draw_records(drawing, parameters, data)
    return State(parameters, drawn, _sums(drawn, data))


def _draw_records(key: Array, parameters: Parameters, data: Records) -> Array:
    """(n, p): a fresh u for each record, from the model."""
    standard = jax.random.normal(key, (*data.holders.shape, data.released.shape[-1]))
    if data.intercept:
        standard = standard.at[:, 0].set(1.0)
    change = record_map(standard_of(parameters, data.prior), data.prior, data.intercept)
    return standard @ change.T


def _sums(drawn: Array, data: Records) -> Array:
    squares = drawn[:, :, None] * drawn[:, None, :]
    return jnp.zeros(data.released.shape).at[data.holders.astype(int)].add(squares)


def _step(key: Array, state: State, data: Records) -> State:
    individuals, given, along = jax.random.split(key, 3)
    return _moved(along, _parameters(given, _renewed(individuals, state, data), data), data)


def _renewed(key: Array, state: State, data: Records) -> State:
    """Each record in turn: a fresh one from the model, accepted by what it does to its holder's sums."""
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
    # Summed anew: rounding errors of n updates do not add up over steps.
    return State(state.parameters, kept, _sums(kept, data))


def _parameters(key: Array, state: State, data: Records) -> State:
    regression, features = jax.random.split(key)
    total, count = state.sums.sum(axis=0), data.counts.sum()
    theta, variance = draw_regression(regression, total, count, data.prior)
    mean, covariance = draw_features(features, total[:-1, :-1], count, data.prior)
    return state._replace(parameters=Parameters(theta, variance, mean, covariance))


def _moved(key: Array, state: State, data: Records) -> State:
    """Metropolis moves of the parameters that take all records along; none of them looks at a record."""
    start = standard_of(state.parameters, data.prior)
    back = jnp.linalg.inv(record_map(start, data.prior, data.intercept))
    density = jax.vmap(log_noise, in_axes=(0, 0, None))

    def sums_of(change: Array) -> Array:
        return jnp.asarray(jnp.einsum("ab,jbc,dc->jad", change, state.sums, change))

    def log_target(standard: Standard, change: Array) -> Array:
        return log_prior(standard, data.prior) + density(sums_of(change), data.released, data).sum()

    def one(carry: Carry, key: Array) -> tuple[Carry, None]:
        standard, _, log_density = carry
        proposing, accepting = jax.random.split(key)
        proposed = nearby(proposing, standard, data.prior)
        moved = record_map(proposed, data.prior, data.intercept) @ back
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


def _sites(state: State) -> dict[str, Array]:
    return {"theta": state.parameters.theta, "variance": state.parameters.variance}


KERNEL = Kernel(_init, _step, _sites)


def _small(statistics: HolderStatistics) -> str:
    if statistics.counts.sum() <= MOST_RECORDS:
        return ""
    return f"has a latent variable for each record: {MOST_RECORDS} records at most"


def _draw(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    return run_kernel(KERNEL, records(statistics, prior), run)


METHOD = Method(
    "mcmc_ind",
    "DPBLR II-B3",
    requirements.all_of(
        requirements.public_counts, requirements.unaveraged, requirements.noisy_moments, _small
    ),
    _draw,
    prior_forms.IN_SDS,
)
