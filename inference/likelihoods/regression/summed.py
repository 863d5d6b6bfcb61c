"""Likelihoods of noisy sums of second moments, for linear and logistic regression in O(d^3) (METHODS 4)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import constraints
from numpyro.distributions.util import validate_sample

from inference.likelihoods.covariance import solve_covariance
from inference.likelihoods.regression.line import LineOfNormalFeatures
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


class SumLaw(NamedTuple):
    """Normal law of S = sum of n outer products v v' plus noise of variance `noise_variance` in svec space.

    records: how many, (...). second: M = E[v v'], (..., p, p). basis, weights: the covariance of one v v' is
    X -> 2 M X M plus sum_ab weights_ab B_a <B_b, X>, with basis (..., k, p, p) of symmetric matrices and
    symmetric weights (..., k, k).
    """

    records: Array
    noise_variance: Array
    second: Array
    basis: Array
    weights: Array

    @property
    def mean(self) -> Array:
        return _scalar(self.records) * self.second

    @property
    def _matrix(self) -> Array:
        return jnp.sqrt(_scalar(2 * self.records / self.noise_variance)) * self.second

    @property
    def _relative_weights(self) -> Array:
        return _scalar(self.records / self.noise_variance) * self.weights

    def log_density(self, residual: Array) -> Array:
        """Log density at S = mean + residual (..., p, p) over all p (p + 1) / 2 svec coordinates."""
        p = residual.shape[-1]
        basis = jnp.broadcast_to(self.basis, (*residual.shape[:-2], *self.basis.shape[-3:]))
        stack = jnp.concatenate([residual[..., None, :, :], basis], axis=-3)
        log_det, solved = solve_covariance(jnp.broadcast_to(self._matrix, residual.shape), stack)
        products = jnp.einsum("...aij,...bij->...ab", stack, solved)
        cross, gram = products[..., 1:, :1], products[..., 1:, 1:]
        small = jnp.eye(gram.shape[-1], dtype=gram.dtype) + self._relative_weights @ gram
        correction = jnp.linalg.solve(small, self._relative_weights @ cross)
        quadratic = (products[..., 0, 0] - jnp.sum(cross * correction, (-1, -2))) / self.noise_variance
        log_scale = p * (p + 1) / 2 * jnp.log(2 * jnp.pi * self.noise_variance)
        log_det_small: Array = jnp.linalg.slogdet(small)[1]
        return -(quadratic + log_det + log_det_small + log_scale) / 2

    def draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        """Symmetric matrices (*shape, p, p); `shape` ends with the law's batch shape."""
        values, vectors = jnp.linalg.eigh(self._matrix)
        values = jnp.maximum(values, 0.0)
        root = jnp.sqrt(1 + values[..., :, None] * values[..., None, :])
        white = _white_noise(key, (*shape, *self.second.shape[-2:]), self.second.dtype)
        whitened_basis = _scaled(self.basis, vectors[..., None, :, :], 1 / root[..., None, :, :])
        white = white + _low_rank_step(whitened_basis, self._relative_weights, white)
        spread = _scaled(white, vectors, root)
        symmetric = (spread + _transpose(spread)) / 2
        return self.mean + jnp.sqrt(_scalar(self.noise_variance)) * symmetric


def _scalar(x: Array) -> Array:
    return jnp.asarray(x)[..., None, None]


def _transpose(x: Array) -> Array:
    return jnp.swapaxes(x, -1, -2)


def _scaled(matrices: Array, vectors: Array, factors: Array) -> Array:
    """Return matrices (..., p, p), multiplied by `factors` in the basis of `vectors`."""
    return vectors @ ((_transpose(vectors) @ matrices @ vectors) * factors) @ _transpose(vectors)


def _white_noise(key: Array, shape: tuple[int, ...], dtype: jnp.dtype) -> Array:
    """Symmetric matrices whose svec coordinates are independent standard normal."""
    square = jax.random.normal(key, shape, dtype)
    return (square + _transpose(square)) / 2


def _low_rank_step(basis: Array, weights: Array, white: Array) -> Array:
    """Return the map from white noise w to noise of covariance I + sum_ab weights_ab B_a <B_b, .>."""
    flat = _transpose(basis.reshape(*basis.shape[:-2], -1))
    axes, coordinates = jnp.linalg.qr(flat)
    values, vectors = jnp.linalg.eigh(
        jnp.eye(basis.shape[-3], dtype=basis.dtype) + coordinates @ weights @ _transpose(coordinates)
    )
    gain = (vectors * (jnp.sqrt(jnp.maximum(values, 0.0)) - 1)[..., None, :]) @ _transpose(vectors)
    step: Array = axes @ (gain @ (_transpose(axes) @ white.reshape(*white.shape[:-2], -1, 1)))
    return step.reshape(white.shape)
