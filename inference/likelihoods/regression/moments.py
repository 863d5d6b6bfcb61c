"""Second moments of a regression's records, and the covariance of one record's products (METHODS 4).

A record is u = (1, x, y), or (x, y) of mean zero without a constant. The features x are jointly normal.
Moments of a sigmoid of a normal predictor are by trapezoid rules (METHODS 4.3).
"""

from itertools import combinations_with_replacement
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import erf

_SWITCH = 2.0
VARIANCE_FLOOR = 1e-12
_Z_STEP, _Z_END = 0.3, 8.4
_S_STEP, _S_END = 0.5, 36.0


def _grid(step: float, end: float) -> np.ndarray:
    return np.arange(-round(end / step), round(end / step) + 1) * step


def _response_derivatives(s: Array) -> Array:
    """g = tanh(s / 2) and its first three derivatives, stacked on a new first axis."""
    g = jnp.tanh(s / 2)
    first = (1 - g**2) / 2
    return jnp.stack([g, first, -g * first, first * (g**2 - first)])


def _in_standard_units(loc: Array, sd: Array) -> Array:
    """Trapezoid in z = (s - loc) / sd: error exp(-2 pi^2 / (sd * step)), from the poles of tanh."""
    z = _grid(_Z_STEP, _Z_END)
    weights = jnp.asarray(np.exp(-(z**2) / 2) * _Z_STEP / np.sqrt(2 * np.pi), sd.dtype)
    nodes = loc[..., None] + sd[..., None] * jnp.asarray(z, sd.dtype)
    return jnp.moveaxis(_response_derivatives(nodes) @ weights, 0, -1)


def _in_logits(loc: Array, sd: Array) -> Array:
    """Trapezoid in s against the derivatives of g, which decay as exp(-|s|); g itself by parts."""
    s = jnp.asarray(_grid(_S_STEP, _S_END), sd.dtype)
    derivatives = _response_derivatives(s)[1:] * _S_STEP
    z = (s - loc[..., None]) / sd[..., None]
    density = jnp.exp(-(z**2) / 2) / (jnp.sqrt(2 * jnp.pi) * sd[..., None])
    mean = -erf(z / jnp.sqrt(2.0)) @ derivatives[0] / 2
    return jnp.concatenate([mean[..., None], density @ derivatives.T], axis=-1)


def response_moments(loc: Array, variance: Array) -> Array:
    """Return E g(s), E g'(s), E g''(s), E g'''(s) for g = 2 sigmoid - 1, s ~ N(loc, variance): (..., 4).

    Absolute error below 1e-10 at any variance: one rule for a predictor that is narrow relative to the
    sigmoid and one for a wide predictor, for which Gauss-Hermite nodes would miss the sigmoid's step.
    """
    sd = jnp.sqrt(variance + VARIANCE_FLOOR)
    narrow = _in_standard_units(loc, jnp.minimum(sd, _SWITCH))
    wide = _in_logits(loc, jnp.maximum(sd, _SWITCH))
    return jnp.where((sd <= _SWITCH)[..., None], narrow, wide)


class Moments(NamedTuple):
    """Mean and covariance of uu' of one record.

    second: M = E[uu'] (p, p). basis (b, p, p), weights (b, b): the covariance is X -> 2 M X M plus
    sum_ab weights_ab B_a <B_b, X>, with symmetric B and weights.
    """

    second: Array
    basis: Array
    weights: Array

    @property
    def constant(self) -> bool:
        """Return True if u has a constant: only then is there a basis."""
        return len(self.basis) > 0

    def draw(self, key: Array, n: Array | float) -> Array:
        """Draw the sum (p, p) of uu' of n records, taken as normal."""
        square = jax.random.normal(key, self.second.shape)
        white = (square + square.T) / 2
        root = jnp.linalg.cholesky(self.second)
        if self.constant:
            # The covariance is 2 n L (I + sum_ab weights_ab / 2 C_a <C_b, .>) L', C = L^-1 B L'^-1.
            half = solve_triangular(root, self.basis, lower=True)
            inside = solve_triangular(root, jnp.swapaxes(half, -1, -2), lower=True)
            axes, coordinates = jnp.linalg.qr(inside.reshape(len(inside), -1).T)
            low_rank = jnp.eye(len(inside)) + coordinates @ self.weights @ coordinates.T / 2
            values, vectors = jnp.linalg.eigh(low_rank)
            gain = (vectors * (jnp.sqrt(jnp.maximum(values, 0.0)) - 1)) @ vectors.T
            white = white + (axes @ (gain @ (axes.T @ white.ravel()))).reshape(white.shape)
        return n * self.second + jnp.sqrt(2.0 * n) * root @ white @ root.T


def linear_moments(
    coefficients: Array,
    intercept: Array | float,
    sd: Array,
    feature_mean: Array | float,
    feature_covariance: Array,
    *,
    constant: bool = True,
    average: int = 1,
) -> Moments:
    """Return the moments for y | x ~ N(intercept + coefficients' x, sd^2), x ~ N(mean, covariance).

    Without a constant, intercept and feature_mean are 0. average: k where a row is the sum of k records over
    sqrt k, its constant sqrt k (DDPLR B.1).
    """
    cross = feature_covariance @ coefficients
    covariance = _bordered(feature_covariance, cross, coefficients @ cross + sd**2)
    if not constant:
        return Moments(covariance, jnp.zeros((0, *covariance.shape)), jnp.zeros((0, 0)))
    mean = _joined(1.0, feature_mean, intercept + coefficients @ feature_mean)
    # Isserlis: Cov(ab, cd) = M_ac M_bd + M_ad M_bc - 2 m_a m_b m_c m_d.
    means = average * mean[:, None] * mean
    return Moments(jnp.pad(covariance, (1, 0)) + means, means[None], jnp.full((1, 1), -2.0))


def logistic_moments(
    coefficients: Array, intercept: Array, feature_mean: Array, feature_covariance: Array
) -> Moments:
    """Return the moments for y in {-1, 1}, P(y = 1 | x) = sigmoid(intercept + coefficients' x).

    The moments of (x, y) up to the fourth are exact by Stein's lemma (METHODS 4.3): all third and fourth
    cumulants lie in the span of feature_covariance @ coefficients and the response's axis.
    """
    cross = feature_covariance @ coefficients
    g = response_moments(intercept + coefficients @ feature_mean, coefficients @ cross)
    mean = _joined(1.0, feature_mean, g[0])
    covariance = _bordered(feature_covariance, g[1] * cross, 1 - g[0] ** 2)
    second = jnp.pad(covariance, (1, 0)) + mean[:, None] * mean
    vectors = [mean, _joined(0.0, cross, 0.0), _joined(0.0, jnp.zeros_like(cross), 1.0)]
    pairs = list(combinations_with_replacement(range(3), 2))
    outer = [vectors[i][:, None] * vectors[j] for i, j in pairs]
    basis = [one if i == j else one + one.T for one, (i, j) in zip(outer, pairs, strict=True)]
    return Moments(second, jnp.stack(basis), _correction_weights(g, pairs))


def _bordered(features: Array, cross: Array, variance: Array) -> Array:
    """Return the covariance of (features, response)."""
    return jnp.block([[features, cross[:, None]], [cross[None], jnp.reshape(variance, (1, 1))]])


def _joined(constant: float, features: Array | float, response: Array | float) -> Array:
    """Return the vector (constant, features, response)."""
    return jnp.concatenate([jnp.full(1, constant), jnp.asarray(features), jnp.reshape(response, (1,))])


def _correction_weights(g: Array, pairs: list[tuple[int, int]]) -> Array:
    """Weights of the covariance beyond 2 M X M on products of (m, u, response axis), (6, 6).

    Cov(ab, cd) = M_ac M_bd + M_ad M_bc - 2 m_a m_b m_c m_d + k4(abcd) + m_a k3(bcd) + ... + m_d k3(abc).
    The rest is a symmetric tensor, so an entry depends only on how often each of the three vectors occurs.
    """
    g0, g1, g2, g3 = g
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
    table = jnp.stack([*by_multiplicity.values(), jnp.zeros_like(g0)])
    multiplicities = [[tuple((*p, *q).count(i) for i in range(3)) for q in pairs] for p in pairs]
    index = [[kinds.index(m) if m in kinds else len(kinds) for m in row] for row in multiplicities]
    return table[jnp.asarray(index)]
