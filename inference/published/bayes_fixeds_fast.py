"""Bayes-fixedS-fast: MCMC-fixedS with σ fixed too, so that θ's posterior is normal in closed form."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published import requirements
from inference.published.base import Method, Run
from inference.published.conjugate import ConjugatePrior
from inference.published.given_grams import nearest_semidefinite, released, theta_posterior
from inference.published.prior_forms import PriorForm
from inference.sampling import Sampled

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


def draw(statistics: HolderStatistics, prior: ConjugatePrior, run: Run) -> Sampled:
    """Independent draws of θ ~ N(m, C) given z_j and the nearest semidefinite S_j; σ² = 1/9."""
    mean, covariance = posterior(statistics, prior)
    random = np.random.default_rng(run.seed)
    theta = random.multivariate_normal(mean, covariance, (run.chains, run.kept), method="cholesky")
    shape = run.chains, run.kept
    return Sampled({"theta": theta, "variance": np.full(shape, VARIANCE)}, np.zeros(shape, bool), (NOTE,))


METHOD = Method(
    name="bayes_fixeds_fast",
    source="DDPLR Algorithm 3",
    refuses=requirements.all_of(requirements.gaussian, requirements.noisy_moments),
    draw=draw,
    prior=PriorForm(fixed_variance=lambda _: VARIANCE),
)
