"""Normal law of a sum of outer products v v', with a structured covariance, in O(p^3) (METHODS 4.1).

Symmetric p by p matrices are vectors in svec coordinates (off-diagonal entries times sqrt 2), so that their
inner product is <X, Y> = trace(X Y). The covariance operator of the sum is, in units of the noise variance,
X -> X + N X N plus a term of low rank on a few symmetric matrices.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from inference.likelihoods.covariance import solve_covariance


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
