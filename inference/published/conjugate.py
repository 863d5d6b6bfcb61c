"""The priors of the published methods, and draws under them given sums over records.

θ is normal and σ² inverse gamma, jointly normal-inverse-gamma in methods that need it (DPBLR eq. 1); features
are normal-inverse-Wishart. Wishart draws are by Bartlett's decomposition and never form an inverse.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from numpy.typing import NDArray

Values = NDArray[np.float64] | Array


class ConjugatePrior(NamedTuple):
    """In the statistics' scaled units; q columns with the constant first if there is one, d features.

    θ ~ N(theta_mean (q,), theta_covariance (q, q)); methods with a normal-inverse-gamma prior multiply that
    covariance by σ², and document it. σ² ~ inverse gamma(shape, rate). The features' covariance Σ ~ inverse
    Wishart(scatter (d, d), freedom), and, if their mean is not zero by assumption, mean ~ N(feature_mean
    (d,), Σ / feature_mean_records).
    """

    theta_mean: Values
    theta_covariance: Values
    shape: float | Array
    rate: float | Array
    scatter: Values
    freedom: float | Array
    feature_mean: Values
    feature_mean_records: float | Array


def default_prior(columns: int, features: int) -> ConjugatePrior:
    """Weak, for features and response in [−1, 1]: slopes of about 1, residual sd of about a half or less."""
    return ConjugatePrior(
        theta_mean=np.zeros(columns),
        theta_covariance=np.eye(columns),
        shape=2.0,
        rate=0.25,
        scatter=np.eye(features) / 4,
        freedom=features + 2.0,
        feature_mean=np.zeros(features),
        feature_mean_records=1.0,
    )


def bartlett(key: Array, freedom: Array, size: int) -> Array:
    """Lower A with AAᵀ ~ Wishart(I, freedom), freedom > size − 1."""
    diagonal, below = jax.random.split(key)
    squares = 2 * jax.random.gamma(diagonal, (freedom - jnp.arange(size)) / 2)
    return jnp.tril(jax.random.normal(below, (size, size)), -1) + jnp.diag(jnp.sqrt(squares))


def inverse_wishart(key: Array, scatter: Array, freedom: Array) -> Array:
    """A draw (d, d) of the inverse Wishart law whose mean is scatter / (freedom − d − 1)."""
    size = scatter.shape[-1]
    # scatter = LLᵀ and W = AAᵀ give (L⁻ᵀ W L⁻¹)⁻¹ = (L A⁻ᵀ)(L A⁻ᵀ)ᵀ.
    factor = solve_triangular(bartlett(key, freedom, size), jnp.linalg.cholesky(scatter).T, lower=True)
    return factor.T @ factor


def nearest_semidefinite(matrices: Array, floor: Array | float = 0.0) -> Array:
    """Return symmetric matrices (…, q, q) with their eigenvalues raised to `floor` (Higham 1988)."""
    values, vectors = jnp.linalg.eigh(matrices)
    return jnp.einsum("...ik,...k,...jk->...ij", vectors, jnp.maximum(values, floor), vectors)


def log_determinant(factor: Array) -> Array:
    """log |LLᵀ| of lower factors (…, d, d)."""
    return 2 * jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)


def draw_regression(key: Array, sums: Values, count: Values, prior: ConjugatePrior) -> tuple[Array, Array]:
    """θ (q,) and σ² (): sums (p, p) of uuᵀ, semidefinite, of `count` records.

    θ | σ² ~ N(theta_mean, σ² · theta_covariance): the prior is in units of the residual variance.
    """
    precision_before = jnp.linalg.inv(prior.theta_covariance)
    precision = sums[:-1, :-1] + precision_before
    shift = sums[:-1, -1] + precision_before @ prior.theta_mean
    lower = jnp.linalg.cholesky(precision)
    mean = jax.scipy.linalg.cho_solve((lower, True), shift)
    squares = sums[-1, -1] + prior.theta_mean @ precision_before @ prior.theta_mean - mean @ shift
    normal, gamma = jax.random.split(key)
    rate = prior.rate + jnp.maximum(squares, 0.0) / 2
    variance = rate / jax.random.gamma(gamma, prior.shape + count / 2)
    noise = solve_triangular(lower.T, jax.random.normal(normal, mean.shape))
    return mean + jnp.sqrt(variance) * noise, variance


def draw_features(
    key: Array, gram: Array, count: Values, prior: ConjugatePrior, rows: Values | None = None
) -> tuple[Array, Array]:
    """Mean (d,) and covariance (d, d): gram (q, q) is Σ wwᵀ of `count` records, semidefinite.

    w = (1, x); or w = x where q = d: then the mean is zero by assumption. rows: how many there are after
    averaging.
    """
    features = prior.scatter.shape[0]
    freedom = jnp.asarray(prior.freedom + (count if rows is None else rows))
    if gram.shape[0] == features:
        return jnp.zeros(features), inverse_wishart(key, jnp.asarray(prior.scatter + gram), freedom)
    # The gram's own constant entry, not the count: the Schur complement of a semidefinite matrix is
    # semidefinite.
    mean = gram[0, 1:] / gram[0, 0]
    centred = gram[1:, 1:] - jnp.outer(mean, mean) * gram[0, 0]
    records = prior.feature_mean_records + count
    away = mean - prior.feature_mean
    scatter = prior.scatter + centred + prior.feature_mean_records * count / records * jnp.outer(away, away)
    middle = (prior.feature_mean_records * prior.feature_mean + count * mean) / records
    wishart, normal = jax.random.split(key)
    covariance = inverse_wishart(wishart, jnp.asarray(scatter), freedom)
    standard = jax.random.normal(normal, (features,))
    return middle + jnp.linalg.cholesky(covariance) @ standard / jnp.sqrt(records), covariance
