"""Regression from perturbed records: every entry of a record with its own noise (METHODS 5, LDPBI 12)."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints

from inference.likelihoods.regression.moments import VARIANCE_FLOOR, Moments, response_moments

# The range and step of the table over t / s, s the width of the expected sigmoid.
_TABLE_END, _TABLE_STEP = 40.0, 0.2


def sigmoid_table(variance: Array) -> Callable[[Array], Array]:
    """Return loc -> E[sigmoid(t)] of one variance (): a table and a quintic, error below 1e-8.

    The table costs 400 evaluations of the rule, each entry of loc (...) a few operations.
    """
    width = jnp.maximum(1.0, jnp.sqrt(variance + VARIANCE_FLOOR) / 2)
    count = round(2 * _TABLE_END / _TABLE_STEP)
    nodes = np.linspace(-_TABLE_END, _TABLE_END, count + 1)
    at = width * jnp.asarray(nodes, width.dtype)
    # E sigmoid, E sigmoid' and E sigmoid''; differentiable in both arguments.
    g = response_moments(at, jnp.broadcast_to(variance, at.shape))
    value, slope, bend = (1 + g[..., 0]) / 2, g[..., 1] / 2, g[..., 2] / 2

    def read(loc: Array) -> Array:
        x = jnp.clip((loc / width + _TABLE_END) / _TABLE_STEP, 0.0, count)
        k = jnp.clip(jnp.floor(x).astype(int), 0, count - 1)
        step = _TABLE_STEP * width
        ends = [(value[i], slope[i] * step, bend[i] * step**2) for i in (k, k + 1)]
        return _quintic(x - k, *ends)

    return read


def _quintic(t: Array, left: tuple[Array, ...], right: tuple[Array, ...]) -> Array:
    """Hermite's quintic on [0, 1] through values, slopes and second derivatives at both ends."""
    (f0, d0, b0), (f1, d1, b1) = left, right
    rise = f1 - f0 - d0 - b0 / 2
    turn = d1 - d0 - b0
    curve = b1 - b0
    cubic = 10 * rise - 4 * turn + curve / 2
    quartic = -15 * rise + 7 * turn - curve
    quintic = 6 * rise - 3 * turn + curve / 2
    return f0 + t * (d0 + t * (b0 / 2 + t * (cubic + t * (quartic + t * quintic))))


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
