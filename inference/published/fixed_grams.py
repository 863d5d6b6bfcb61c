"""MCMC-fixedS: S_j is taken to be the positive semidefinite matrix nearest to the released matrix.

Bayes-fixedS-fast has σ fixed too, so that θ's posterior is normal in closed form.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

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
    theta_posterior,
    walk_variance,
)
from inference.sampling import Sampled

REFUSES = requirements.all_of(requirements.gaussian, requirements.noisy_moments)


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
    refuses=REFUSES,
    draw=draw,
    prior=prior_forms.INDEPENDENT,
)

# DDPLR's crude estimate of σ is a third of the responses' bound, which is 1 in scaled units.
VARIANCE = 1 / 9
NOTE = "bayes_fixeds_fast does not estimate the residual sd: it takes a third of the response's bound"


def posterior(
    statistics: HolderStatistics, prior: ConjugatePrior, variance: float = VARIANCE
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """θ's posterior mean (q,) and covariance (q, q), σ² given."""
    with jax.enable_x64(True):
        data = jax.tree.map(np.asarray, released(statistics, prior))
        found = theta_posterior(nearest_semidefinite(data.gram), jnp.asarray(variance), data)
        mean, factor = (np.asarray(part) for part in found)
    inverse = np.linalg.inv(factor)
    return mean, inverse.T @ inverse


def draw_fast(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    """Independent draws of θ ~ N(m, C) given z_j and the nearest semidefinite S_j; σ² = 1/9."""
    mean, covariance = posterior(statistics, prior)
    random = np.random.default_rng(run.seed)
    theta = random.multivariate_normal(mean, covariance, (run.chains, run.kept), method="cholesky")
    shape = run.chains, run.kept
    return Sampled({"theta": theta, "variance": np.full(shape, VARIANCE)}, np.zeros(shape, bool), (NOTE,))


FAST = Method(
    name="bayes_fixeds_fast",
    source="DDPLR Algorithm 3",
    refuses=REFUSES,
    draw=draw_fast,
    prior=prior_forms.PriorForm(fixed_variance=lambda _: VARIANCE),
)
