"""Bayesian linear regression on noisy sums of projected records (DCA Algorithm 2 and equations 11 to 13).

The noise is taken for data and σ² is given, not inferred: the prior's mean of it. The authors have σ² = 1.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from inference.published import independent, non_private, requirements
from inference.published.conjugate import ConjugatePrior, Values
from inference.published.non_private import Summed
from inference.published.prior_forms import PriorForm
from inference.published.semidefinite import with_absolute_eigenvalues

NOTE = (
    "projected_blr takes the noise for data and does not estimate the residual sd: its intervals mean nothing"
)


def _variance(prior: ConjugatePrior) -> float | Array:
    return prior.rate / (prior.shape - 1)


def posterior(sums: Values, prior: ConjugatePrior) -> tuple[Array, Array, Array]:
    """θ's mean (q,), the lower factor (q, q) of its precision, and σ²; sums (p, p) of uuᵀ."""
    variance = jnp.asarray(_variance(prior))
    before = jnp.linalg.inv(prior.theta_covariance)
    lower = jnp.linalg.cholesky(with_absolute_eigenvalues(jnp.asarray(sums[:-1, :-1])) / variance + before)
    shift = sums[:-1, -1] / variance + before @ prior.theta_mean
    return jax.scipy.linalg.cho_solve((lower, True), shift), lower, variance


def _draw(key: Array, data: Summed) -> dict[str, Array]:
    sums, _count, prior = data
    mean, lower, variance = posterior(sums, prior)
    standard = jax.random.normal(key, mean.shape)
    theta = mean + jax.scipy.linalg.solve_triangular(lower.T, standard, lower=False)
    return {"theta": theta, "variance": variance}


KERNEL = independent.independent(_draw)

METHOD = independent.method(
    "projected_blr",
    "DCA Algorithm 2",
    requirements.moments,
    KERNEL,
    non_private.summed,
    PriorForm(fixed_variance=lambda prior: float(_variance(prior))),
    (NOTE,),
)
