"""The dense normal approximation of summed second moments: LDPBI equation 3, Bernstein and Sheldon 2019."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from numpyro.distributions.util import validate_sample

from inference.likelihoods.regression.summed import SummedLinearStatistics


class DenseLinearStatistics(SummedLinearStatistics):
    """The density of SummedLinearStatistics from the D by D covariance of all D = p (p + 1) / 2 coordinates.

    Arguments, values and density are the same; the cost is O(p^6) and the memory O(p^4). No batches.
    """

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        law = self.law
        factor = jnp.linalg.cholesky(self._dense_covariance())
        residual = self._coordinates(jnp.asarray(value) - law.mean)
        white = solve_triangular(factor, residual, lower=True)
        log_det = 2 * jnp.log(jnp.diagonal(factor)).sum()
        return -(white @ white + log_det + len(residual) * jnp.log(2 * jnp.pi)) / 2

    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows, columns and svec weights of the coordinates that carry noise."""
        i, j = np.triu_indices(self.event_shape[0])
        noisy = ~((i == j) & np.isin(i, self.exact))
        return i[noisy], j[noisy], np.where(i == j, 1.0, np.sqrt(2.0))[noisy]

    def _coordinates(self, matrix: Array) -> Array:
        i, j, weight = self._places()
        return matrix[i, j] * weight

    def _dense_covariance(self) -> Array:
        """Isserlis' theorem for an uncentred normal v, n times, and the noise."""
        i, j, weight = self._places()
        loc, variance, cross = self._predictor
        moments = self._moments(loc, cross, variance + self.sd**2)
        m, second = moments.mean, moments.second
        pairs = second[i][:, i] * second[j][:, j] + second[i][:, j] * second[j][:, i]
        means = m[i] * m[j]
        one = (pairs - 2 * means[:, None] * means[None, :]) * weight[:, None] * weight[None, :]
        return self.total_count * one + self.noise_variance * jnp.eye(len(i))
