"""Regression from perturbed records: every entry of a record with its own noise (METHODS 5, LDPBI 12)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample

from inference.likelihoods.common import summed_in_chunks
from inference.likelihoods.regression.line import LineOfNormalFeatures
from inference.likelihoods.regression.sigmoid import expected_sigmoid, sigmoid_table

# The degrees of freedom of a scatter's factor without freedom.
_NO_FREEDOM = 1e-6
_LOG_2PI = 1.8378770664093453


class PerturbedLinearRecords(LineOfNormalFeatures):
    """Second moments of perturbed records of a linear regression, in O(d^3) for any number (METHODS 5.1).

    x ~ N(feature_mean, feature_covariance), y | x ~ N(intercept + coefficients' x, sd^2); a report is
    z = (x, y) plus independent normal noise. A value is the sum over `total_count` reports of (1, z)(1, z)',
    shape (..., d + 2, d + 2): it is sufficient, and the density is that of the reports. Groups with different
    noise are a batch.

    Args:
        sd: of the response around its mean, shape (...).
        feature_noise_sd: of the noise in each feature, shape (...).
        response_noise_sd: of the noise in the response, shape (...).
        total_count: how many reports, shape (...).
        others: the arguments of LineOfNormalFeatures.
    """

    arg_constraints = {  # noqa: RUF012
        **LineOfNormalFeatures.arg_constraints,
        "sd": constraints.positive,
        "feature_noise_sd": constraints.nonnegative,
        "response_noise_sd": constraints.nonnegative,
        "total_count": constraints.nonnegative_integer,
    }
    support = constraints.real_matrix
    sd: Array
    feature_noise_sd: Array
    response_noise_sd: Array
    total_count: Array

    @staticmethod
    def _event_shape_of(d: int) -> tuple[int, ...]:
        return d + 2, d + 2

    @property
    def report_law(self) -> tuple[Array, Array]:
        """Mean (..., d + 1) and covariance (..., d + 1, d + 1) of one report."""
        centre, explained, cross = self._predictor
        variance = explained + self.sd**2 + self.response_noise_sd**2
        features = _with_noise(self.feature_covariance, self.feature_noise_sd)
        shape = self.batch_shape
        mean = jnp.broadcast_to(self.feature_mean, (*shape, cross.shape[-1]))
        mean = jnp.concatenate([mean, jnp.broadcast_to(centre, shape)[..., None]], -1)
        return mean, self._bordered(features, cross, variance)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw sums of the second moments of `total_count` reports, by mean and scatter (Bartlett 1933).

        Args:
            key: JAX's random key.
            sample_shape: shape of the sample; the batch's and the event's follow it.

        Returns:
            Sums of shape (sample_shape..., ..., d + 2, d + 2).
        """
        assert key is not None
        mean, covariance = self.report_law
        n, size = self.total_count.astype(mean.dtype)[..., None], mean.shape[-1]
        shape = (*sample_shape, *self.batch_shape)
        of_mean, of_spread, of_angle = jax.random.split(key, 3)
        # Fewer reports than columns have a scatter of lower rank.
        freedom = jnp.maximum(n - 1 - jnp.arange(size), _NO_FREEDOM)
        spread = jnp.sqrt(2 * jax.random.gamma(of_spread, freedom / 2, (*shape, size)))
        angle = jnp.tril(jax.random.normal(of_angle, (*shape, size, size)), -1)
        factor = jnp.linalg.cholesky(covariance)
        root = factor @ (angle + spread[..., None] * jnp.eye(size))
        away = jnp.einsum("...ij,...j->...i", factor, jax.random.normal(of_mean, (*shape, size)))
        centre = mean + away / jnp.sqrt(n)
        moments = root @ jnp.swapaxes(root, -1, -2) + n[..., None] * centre[..., None] * centre[..., None, :]
        sums = n * centre
        count = jnp.broadcast_to(n, (*shape, 1))
        top = jnp.concatenate([count, sums], -1)[..., None, :]
        return jnp.concatenate([top, jnp.concatenate([sums[..., None], moments], -1)], -2)

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        value, n = jnp.asarray(value), self.total_count
        mean, covariance = self.report_law
        factor = jnp.linalg.cholesky(covariance)
        # With B = (-mean, I), the centred second moments are B S B'.
        identity = jnp.broadcast_to(jnp.eye(mean.shape[-1]), covariance.shape)
        centring = jnp.concatenate([-mean[..., None], identity], -1)
        white = solve_triangular(factor, centring, lower=True)
        squares = jnp.einsum("...ij,...jk,...ik->...", white, value, white)
        log_det = jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
        return -squares / 2 - n * (log_det + mean.shape[-1] * _LOG_2PI / 2)


class PerturbedLogisticRecords(LineOfNormalFeatures):
    """One perturbed record of a logistic regression (METHODS 5.2).

    x ~ N(feature_mean, feature_covariance), P(y = 1 | x) = sigmoid(intercept + coefficients' x). A report is
    (x + normal noise, 1 or 0): the response is 1 with probability p if y is 1, and q otherwise. A value (...,
    d + 1) ends with the response. With a feature_noise_sd, p or q of shape (n,) each report has its own
    budget. There is no statistic of fixed size: the cost is O(n d).

    Args:
        feature_noise_sd: of the noise in each feature, shape (...).
        p: probability that a 1 is reported as 1, shape (...).
        q: probability that a 0 is reported as 1, shape (...).
        others: the arguments of LineOfNormalFeatures.
    """

    arg_constraints = {  # noqa: RUF012
        **LineOfNormalFeatures.arg_constraints,
        "feature_noise_sd": constraints.nonnegative,
        "p": constraints.unit_interval,
        "q": constraints.unit_interval,
    }
    support = constraints.real_vector
    feature_noise_sd: Array
    p: Array
    q: Array

    @staticmethod
    def _event_shape_of(d: int) -> tuple[int, ...]:
        return (d + 1,)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        shape = sample_shape + self.batch_shape
        of_x, of_noise, of_y, of_report = jax.random.split(key, 4)
        x = jax.random.multivariate_normal(of_x, self.feature_mean, self.feature_covariance, shape)
        z = x + self.feature_noise_sd[..., None] * jax.random.normal(of_noise, x.shape)
        chance = jax.nn.sigmoid(self.intercept + jnp.sum(self.coefficients * x, -1))
        y = jax.random.bernoulli(of_y, chance)
        told = jax.random.bernoulli(of_report, jnp.where(y, self.p, self.q))
        return jnp.concatenate([z, told[..., None]], -1)

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        return self._density()(jnp.asarray(value))

    def summed_log_prob(self, reports: ArrayLike) -> Array:
        """Compute the joint log density of independent reports of one law, in memory independent of n.

        Args:
            reports: shape (n, d + 1), as values are.

        Returns:
            A number, whose gradient goes through the reports by CHUNK again.
        """
        return summed_in_chunks(self._density(), jnp.asarray(reports))

    def _density(self) -> Callable[[Array], Array]:
        """Return the log density of reports (..., d + 1); their common terms are computed once."""
        factor = jnp.linalg.cholesky(_with_noise(self.feature_covariance, self.feature_noise_sd))
        d = self.feature_mean.shape[-1]
        white = solve_triangular(factor, jnp.broadcast_to(jnp.eye(d), factor.shape), lower=True)
        # The predictor's law given the report: its slope in the whitened features, and its remaining
        # variance.
        loc, explained, cross = self._predictor
        along = jnp.einsum("...ij,...j->...i", white, cross)
        variance = jnp.maximum(explained - jnp.sum(along**2, -1), 0.0)
        # Exact to 1e-8; from a table if all reports share one variance.
        mean = partial(expected_sigmoid, variance=variance) if variance.ndim else sigmoid_table(variance)
        log_det = jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)

        def density(value: Array) -> Array:
            away, told = value[..., :-1] - self.feature_mean, value[..., -1]
            scores = jnp.einsum("...ij,...j->...i", white, away)
            yes = self.q + (self.p - self.q) * mean(loc + jnp.sum(along * scores, -1))
            of_features = -jnp.sum(scores**2, -1) / 2 - log_det - d * _LOG_2PI / 2
            of_response = jnp.where(told > 0.5, yes, 1 - yes)
            return of_features + jnp.log(jnp.maximum(of_response, jnp.finfo(yes.dtype).tiny))

        return density


def _with_noise(covariance: Array, noise_sd: Array) -> Array:
    return covariance + noise_sd[..., None, None] ** 2 * jnp.eye(covariance.shape[-1])
