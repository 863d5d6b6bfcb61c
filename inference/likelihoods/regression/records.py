"""Regression from perturbed records: every entry of a record with its own noise (METHODS 5, LDPBI 12)."""

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints

from inference.likelihoods.regression.moments import Moments
from inference.likelihoods.regression.sigmoid import sigmoid_table

_LOG_2PI = 1.8378770664093453


class PerturbedLinearRecords(Distribution):
    """Second moments of perturbed records of a linear regression, in O(d^3) for any number (METHODS 5.1).

    A report is z = (x, y) plus independent normal noise. A value is the sum over `total_count` reports of
    (1, z)(1, z)', shape (d + 2, d + 2): it is sufficient, and the density is that of the reports.

    Args:
        moments: `linear_moments` of the records.
        noise_sd: of the noise in each feature and in the response, shape (d + 1,).
        total_count: how many reports, shape ().
    """

    support = constraints.real_matrix

    def __init__(self, moments: Moments, noise_sd: ArrayLike, total_count: ArrayLike) -> None:
        noise = jnp.pad(jnp.square(jnp.asarray(noise_sd)), (1, 0))
        self.moments = moments._replace(second=moments.second + jnp.diag(noise))
        self.total_count = jnp.asarray(total_count)
        super().__init__((), moments.second.shape)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw the sum of the reports' second moments, taken as normal.

        Args:
            key: JAX's random key.
            sample_shape: must be ().

        Returns:
            A sum of shape (d + 2, d + 2).
        """
        assert key is not None
        assert not sample_shape
        return self.moments.draw(key, self.total_count)

    def log_prob(self, value: ArrayLike) -> Array:
        second, n = self.moments.second, self.total_count
        mean = second[0, 1:]
        factor = jnp.linalg.cholesky(second[1:, 1:] - mean[:, None] * mean)
        # With B = (-mean, I), the centred second moments are B S B'.
        centring = jnp.concatenate([-mean[:, None], jnp.eye(len(mean))], -1)
        white = solve_triangular(factor, centring, lower=True)
        squares = jnp.einsum("ij,jk,ik->", white, jnp.asarray(value), white)
        return -squares / 2 - n * (jnp.log(jnp.diagonal(factor)).sum() + len(mean) * _LOG_2PI / 2)


def perturbed_logistic_density(
    coefficients: Array,
    intercept: Array,
    feature_mean: Array,
    feature_covariance: Array,
    *,
    feature_noise_sd: float,
    p: float,
    q: float,
) -> Callable[[Array], Array]:
    """Return the log density of perturbed records of a logistic regression (METHODS 5.2).

    x ~ N(feature_mean, feature_covariance), P(y = 1 | x) = sigmoid(intercept + coefficients' x). A report is
    (x + normal noise, 1 or 0): the response is 1 with probability p if y is 1, and q otherwise. There is no
    statistic of fixed size: the cost is O(n d). For very many reports, sum it by `summed_in_chunks`.

    Args:
        coefficients: slopes in the units of the records, shape (d,).
        intercept: shape ().
        feature_mean: shape (d,).
        feature_covariance: shape (d, d).
        feature_noise_sd: of the noise in each feature, shape ().
        p: probability that a 1 is reported as 1, shape ().
        q: probability that a 0 is reported as 1, shape ().

    Returns:
        A function from reports (..., d + 1), which end with the response, to log densities (...).
    """
    d = feature_mean.shape[-1]
    noise = feature_noise_sd**2 * jnp.eye(d)
    factor = jnp.linalg.cholesky(feature_covariance + noise)
    white = solve_triangular(factor, jnp.eye(d), lower=True)
    # The predictor's law given the report: its slope in the whitened features, and its remaining variance.
    loc, cross = intercept + coefficients @ feature_mean, feature_covariance @ coefficients
    along = white @ cross
    variance = jnp.maximum(coefficients @ cross - along @ along, 0.0)
    mean = sigmoid_table(variance)
    log_det = jnp.log(jnp.diagonal(factor)).sum()

    def density(reports: Array) -> Array:
        away, told = reports[..., :-1] - feature_mean, reports[..., -1]
        scores = away @ white.T
        yes = q + (p - q) * mean(loc + scores @ along)
        of_features = -jnp.sum(scores**2, -1) / 2 - log_det - d * _LOG_2PI / 2
        of_response = jnp.where(told > 0.5, yes, 1 - yes)
        return of_features + jnp.log(jnp.maximum(of_response, jnp.finfo(yes.dtype).tiny))

    return density
