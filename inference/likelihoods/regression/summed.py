"""Likelihoods of noisy sums of second moments, for linear and logistic regression in O(d^3) (METHODS 4)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample

from inference.likelihoods.regression.line import LineOfNormalFeatures
from inference.likelihoods.regression.moments import SumLaw
from inference.likelihoods.regression.sigmoid import response_moments


class _Moments(NamedTuple):
    """Mean m (..., p) and covariance C (..., p, p) of v = (constant, features, weighted response)."""

    mean: Array
    covariance: Array

    @property
    def second(self) -> Array:
        return self.covariance + self.mean[..., :, None] * self.mean[..., None, :]


class SummedStatistics(LineOfNormalFeatures):
    """Noisy sum over records of v v', v = (constant_weight, x, response_weight * y), x ~ N(mean, covariance).

    Values are symmetric matrices (..., p, p) with p = d + 2: S = sum v v' + noise. The noise is independent
    with variance `noise_variance` (summed over all reports) in each svec coordinate, that is noise_variance
    on the diagonal and half of it on each off-diagonal entry. Coordinates that are known exactly carry no
    information: the density ignores their values in S. S need not be positive definite.

    The sum is taken as normal (its skewness is of order 1 / sqrt(total_count)); its mean and covariance are
    exact. The density is over the svec coordinates that carry noise, in O(p^3).

    Args:
        total_count: how many records, shape (...).
        noise_variance: of each svec coordinate, over all reports, shape (...).
        constant_weight: of the constant in a record's vector, shape (...).
        response_weight: of the response in a record's vector, shape (...).
        others: the arguments of LineOfNormalFeatures.
    """

    arg_constraints = {  # noqa: RUF012
        **LineOfNormalFeatures.arg_constraints,
        "total_count": constraints.nonnegative_integer,
        "noise_variance": constraints.positive,
        "constant_weight": constraints.positive,
        "response_weight": constraints.positive,
    }
    support = constraints.real_matrix
    exact: ClassVar[tuple[int, ...]]
    total_count: Array
    noise_variance: Array
    constant_weight: Array
    response_weight: Array

    @staticmethod
    def _event_shape_of(d: int) -> tuple[int, ...]:
        return d + 2, d + 2

    @property
    @abstractmethod
    def law(self) -> SumLaw:
        """Return the normal law of the sum, with exact coordinates treated as noisy."""

    @property
    def mean(self) -> Array:
        return self.law.mean

    @property
    def _noisy(self) -> np.ndarray:
        mask = np.ones(self.event_shape, bool)
        mask[list(self.exact), list(self.exact)] = False
        return mask

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        law = self.law
        return jnp.where(self._noisy, law.draw(key, sample_shape + self.batch_shape), law.mean)

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        law = self.law
        density = law.log_density(jnp.where(self._noisy, jnp.asarray(value) - law.mean, 0.0))
        return density + len(self.exact) * jnp.log(2 * jnp.pi * self.noise_variance) / 2

    def _moments(self, response_mean: Array, response_cross: Array, response_variance: Array) -> _Moments:
        """Moments of v from the unweighted response's mean, covariance with x, and variance."""
        shape, c = self.batch_shape, self.response_weight
        mean = _joined(shape, self.constant_weight, self.feature_mean, c * response_mean)
        cross, variance = c[..., None] * response_cross, c**2 * response_variance
        no_constant = [(0, 0)] * len(shape) + [(1, 0), (1, 0)]
        return _Moments(mean, jnp.pad(self._bordered(self.feature_covariance, cross, variance), no_constant))


def _joined(shape: tuple[int, ...], constant: ArrayLike, features: Array, response: ArrayLike) -> Array:
    """The vector (constant, features, response) with the given batch shape."""
    first, last = (jnp.broadcast_to(end, shape)[..., None] for end in (constant, response))
    return jnp.concatenate([first, jnp.broadcast_to(features, (*shape, features.shape[-1])), last], -1)


class SummedLinearStatistics(SummedStatistics):
    """Noisy sum of second moments for y | x ~ N(intercept + coefficients' x, sd^2) (METHODS 4.1, 4.2).

    The (constant, constant) coordinate is exact.

    Args:
        sd: the response's own, before `response_weight`, shape (...).
        others: the arguments of SummedStatistics.
    """

    arg_constraints = {**SummedStatistics.arg_constraints, "sd": constraints.positive}  # noqa: RUF012
    exact = (0,)
    sd: Array

    @property
    def law(self) -> SumLaw:
        loc, variance, cross = self._predictor
        moments = self._moments(loc, cross, variance + self.sd**2)
        basis, _ = _products([moments.mean])
        weights = jnp.full((1, 1), -2.0, basis.dtype)
        return SumLaw(self.total_count, self.noise_variance, moments.second, basis, weights)


class SummedLogisticStatistics(SummedStatistics):
    """Noisy sum of second moments for y in {-1, 1}, P(y = 1 | x) = sigmoid(intercept + coefficients' x).

    The (constant, constant) and (response, response) coordinates are exact. The moments of (x, y) up to the
    fourth are exact by Stein's lemma (METHODS 4.3): all third and fourth cumulants lie in the span of
    u = feature_covariance @ coefficients and the response's axis. Arguments and values are as in
    SummedStatistics.
    """

    exact = (0, -1)

    @property
    def law(self) -> SumLaw:
        loc, variance, cross = self._predictor
        g = response_moments(loc, variance)
        moments = self._moments(g[..., 0], g[..., 1:2] * cross, 1 - g[..., 0] ** 2)
        along = _joined(self.batch_shape, 0.0, cross, 0.0)
        axis = _joined(self.batch_shape, 0.0, jnp.zeros_like(cross), self.response_weight)
        basis, pairs = _products([moments.mean, along, axis])
        weights = _correction_weights(g, pairs)
        return SumLaw(self.total_count, self.noise_variance, moments.second, basis, weights)


def _products(vectors: Sequence[Array]) -> tuple[Array, list[tuple[int, int]]]:
    """Symmetric products a b' + b a' (a a' once where equal) of all pairs, (..., k, p, p), and the pairs."""
    pairs = list(combinations_with_replacement(range(len(vectors)), 2))
    outer = [vectors[i][..., :, None] * vectors[j][..., None, :] for i, j in pairs]
    products = [o if i == j else o + jnp.swapaxes(o, -1, -2) for o, (i, j) in zip(outer, pairs, strict=True)]
    return jnp.stack(products, axis=-3), pairs


def _correction_weights(g: Array, pairs: list[tuple[int, int]]) -> Array:
    """Weights of the covariance beyond 2 M X M on products of (m, u, response axis), (..., 6, 6).

    Cov(ab, cd) = M_ac M_bd + M_ad M_bc - 2 m_a m_b m_c m_d + k4(abcd) + m_a k3(bcd) + ... + m_d k3(abc).
    The rest is a symmetric tensor, so an entry depends only on how often each of the three vectors occurs.
    """
    g0, g1, g2, g3 = jnp.moveaxis(g, -1, 0)
    spread = 1 - g0**2
    by_multiplicity = {
        (4, 0, 0): jnp.full_like(g0, -2.0),
        (1, 2, 1): g2,
        (1, 1, 2): -2 * g0 * g1,
        (1, 0, 3): -2 * g0 * spread,
        (0, 3, 1): g3,
        (0, 2, 2): -2 * (g0 * g2 + g1**2),
        (0, 1, 3): (6 * g0**2 - 2) * g1,
        (0, 0, 4): -2 * spread * (1 - 3 * g0**2),
    }
    kinds = list(by_multiplicity)
    table = jnp.stack([*by_multiplicity.values(), jnp.zeros_like(g0)], axis=-1)
    multiplicities = [[tuple((*p, *q).count(i) for i in range(3)) for q in pairs] for p in pairs]
    index = [[kinds.index(m) if m in kinds else len(kinds) for m in row] for row in multiplicities]
    return table[..., jnp.asarray(index)]
