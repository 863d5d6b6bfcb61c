"""Posteriors in closed form from sums that are exact, or are taken for exact.

non_private: the conjugate posterior from exact statistics: what privacy costs is measured against it (DPBLR
II-A). naive: noisy statistics taken for exact, made positive semidefinite (DPBLR II-B2). The authors' code
repairs the posterior's precision and its inverse each for itself, so that they are no longer inverses, and
raises the inverse gamma's rate to 0.1 at least. Here statistics are repaired once, as in Gibbs-SS: then the
rate is never below the prior's. projected_blr: Bayesian linear regression on noisy sums of projected
records (DCA Algorithm 2 and equations 11 to 13), with a σ² that is given, not inferred: the prior's mean of
it. The authors have σ² = 1.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.likelihoods.holders import HolderStatistics
from inference.published.base import Check, Kernel, Method, Run, run_kernel, unaveraged
from inference.published.conjugate import ConjugatePrior, Values, draw_regression, nearest_semidefinite
from inference.sampling.nuts import Sampled

Summed = tuple[Values, Values, ConjugatePrior]
Draw = Callable[[Array, Any], dict[str, Array]]


def independent(draw: Draw) -> Kernel:
    """The kernel that only draws; it needs no warm-up."""
    return Kernel(draw, lambda key, _state, data: draw(key, data), lambda state: state)


def independent_method(
    name: str,
    checks: tuple[Check, ...],
    kernel: Kernel,
    data_of: Callable[[HolderStatistics, ConjugatePrior], Any],
    reasons: tuple[str, ...] = (),
) -> Method:
    """The method of such a kernel; data_of gives the kernel's data. reasons: not to trust its draws."""

    def draw(statistics: HolderStatistics, under: ConjugatePrior, run: Run) -> Sampled:
        drawn = run_kernel(kernel, data_of(statistics, under), run._replace(warmup=0, thin=1))
        return replace(drawn, reasons=reasons)

    return Method(name, checks, draw)


def moments(statistics: HolderStatistics) -> str:
    """Require all of XᵀX and Xᵀy."""
    return "" if np.all(np.isfinite(statistics.noise[:, :-1])) else "needs all of XᵀX and Xᵀy"


def squares(statistics: HolderStatistics) -> str:
    """Require a released yᵀy."""
    return "" if statistics.has_squares else "needs yᵀy, which was not released"


def _draw_exact(key: Array, data: Summed) -> dict[str, Array]:
    theta, variance = draw_regression(key, *data)
    return {"theta": theta, "variance": variance}


NON_PRIVATE_KERNEL = independent(_draw_exact)


def summed(statistics: HolderStatistics, prior: ConjugatePrior) -> Summed:
    """The kernel's data: all holders' sums (p, p), number of records, prior."""
    return statistics.sums.sum(axis=0), np.asarray(statistics.counts.sum()), prior


def _exact(statistics: HolderStatistics) -> str:
    is_exact = not statistics.noise.any() and statistics.count_sd == 0
    return "" if is_exact else "needs exact statistics; naive takes noisy ones for exact"


NON_PRIVATE = independent_method(
    "non_private",
    (_exact, unaveraged),
    NON_PRIVATE_KERNEL,
    summed,
)


def _draw_repaired(key: Array, data: Summed) -> dict[str, Array]:
    sums, count, prior = data
    theta, variance = draw_regression(
        key, nearest_semidefinite(jnp.asarray(sums)), jnp.maximum(count, 1.0), prior
    )
    return {"theta": theta, "variance": variance}


NAIVE_NOTE = "naive takes the noise for data: its intervals are too narrow, however much noise there is"
NAIVE_KERNEL = independent(_draw_repaired)


NAIVE = independent_method(
    "naive",
    (unaveraged, moments, squares),
    NAIVE_KERNEL,
    summed,
    (NAIVE_NOTE,),
)


PROJECTED_BLR_NOTE = (
    "projected_blr takes the noise for data and does not estimate the residual sd: its intervals mean nothing"
)


def _given_variance(prior: ConjugatePrior) -> float | Array:
    return prior.rate / (prior.shape - 1)


def posterior(sums: Values, prior: ConjugatePrior) -> tuple[Array, Array, Array]:
    """θ's mean (q,), the lower factor (q, q) of its precision, and σ²; sums (p, p) of uuᵀ."""
    variance = jnp.asarray(_given_variance(prior))
    before = jnp.linalg.inv(prior.theta_covariance)
    lower = jnp.linalg.cholesky(with_absolute_eigenvalues(jnp.asarray(sums[:-1, :-1])) / variance + before)
    shift = sums[:-1, -1] / variance + before @ prior.theta_mean
    return jax.scipy.linalg.cho_solve((lower, True), shift), lower, variance


def with_absolute_eigenvalues(matrix: Array) -> Array:
    """Eigenvalues become their absolute values (DCA's authors), (p, p) symmetric."""
    values, vectors = jnp.linalg.eigh(matrix)
    return jnp.asarray((vectors * jnp.abs(values)) @ vectors.T)


def _draw_projected(key: Array, data: Summed) -> dict[str, Array]:
    sums, _count, prior = data
    mean, lower, variance = posterior(sums, prior)
    standard = jax.random.normal(key, mean.shape)
    theta = mean + jax.scipy.linalg.solve_triangular(lower.T, standard, lower=False)
    return {"theta": theta, "variance": variance}


PROJECTED_BLR_KERNEL = independent(_draw_projected)

PROJECTED_BLR = independent_method(
    "projected_blr",
    moments,
    PROJECTED_BLR_KERNEL,
    summed,
    (PROJECTED_BLR_NOTE,),
)
