"""MCMC-fixedS: S_j is taken to be the positive semidefinite matrix nearest to the released matrix."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published import prior_forms, requirements
from inference.published.base import Kernel, Method, Run, run_kernel
from inference.published.conjugate import ConjugatePrior
from inference.published.given_grams import (
    WALK_ACCEPTANCE,
    Released,
    adapted,
    draw_theta,
    nearest_semidefinite,
    released,
    starting_variance,
    walk_variance,
)
from inference.sampling import Sampled


class State(NamedTuple):
    """gram: (J, q, q), fixed. log_step: of σ²'s random walk. time: steps made."""

    theta: Array
    variance: Array
    gram: Array
    log_step: Array
    time: Array


def init(key: Array, data: Released) -> State:
    """σ² about its prior's, then θ."""
    gram = nearest_semidefinite(data.gram)
    first, second = jax.random.split(key)
    variance = starting_variance(first, data)
    return State(draw_theta(second, gram, variance, data), variance, gram, jnp.zeros(()), jnp.zeros(()))


def step(key: Array, state: State, data: Released) -> State:
    """Do one iteration of Algorithm 2."""
    first, second = jax.random.split(key)
    theta = draw_theta(first, state.gram, state.variance, data)
    variance, chance = walk_variance(second, state.gram, theta, state.variance, state.log_step, data)
    log_step = adapted(state.log_step, chance, WALK_ACCEPTANCE, state.time, data)
    return State(theta, variance, state.gram, log_step, state.time + 1)


def sites(state: State) -> dict[str, Array]:
    """θ and σ²."""
    return {"theta": state.theta, "variance": state.variance}


KERNEL = Kernel(init, step, sites)


def draw(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    """Draws of θ ~ N(m, C), σ² ~ IG(a, b) given the released z_j and the fixed S_j."""
    return run_kernel(KERNEL, released(statistics, prior, run.warmup), run)


METHOD = Method(
    name="mcmc_fixeds",
    source="DDPLR Algorithm 2",
    refuses=requirements.all_of(requirements.gaussian, requirements.noisy_moments),
    draw=draw,
    prior=prior_forms.INDEPENDENT,
)
