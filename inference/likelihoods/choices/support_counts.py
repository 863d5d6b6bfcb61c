"""Counts of how often each choice was supported, taken as normal: O(k) for any reports (METHODS 3.2)."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample


class SupportCounts(Distribution):
    """Counts of the `total_count` reports that support each choice, taken as normal with the exact moments.

    `probs` (..., k); a report supports the true choice with probability p, another with q; values are real
    vectors (..., k). Mean n m, m = q + (p - q) probs. With no reports the density is 1. The covariance of one
    report is a diagonal less a low rank, which a subclass states.
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.simplex,
        "p": constraints.unit_interval,
        "q": constraints.unit_interval,
        "total_count": constraints.nonnegative,
    }
    support = constraints.real_vector

    def __init__(
        self,
        probs: ArrayLike,
        p: ArrayLike,
        q: ArrayLike,
        total_count: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.probs = jnp.asarray(probs)
        dtype = self.probs.dtype
        self.p, self.q, self.total_count = (jnp.asarray(x, dtype) for x in (p, q, total_count))
        shape = jnp.broadcast_shapes(
            self.probs.shape[:-1], self.p.shape, self.q.shape, self.total_count.shape
        )
        super().__init__(shape, self.probs.shape[-1:], validate_args=validate_args)

    @property
    def _root(self) -> Array:
        return (self.p - self.q)[..., None] * self.probs

    @property
    def mean(self) -> Array:
        return self.total_count[..., None] * (self.q[..., None] + self._root)

    @property
    @abstractmethod
    def _dimension(self) -> int:
        """The dimension of the space that the counts fill."""

    @abstractmethod
    def _energy(self, residual: Array) -> tuple[Array, Array]:
        """Return residual' C^-1 residual and log det C for the covariance C of one report, (...)."""

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        quadratic, log_det = self._energy(jnp.asarray(value) - self.mean)
        n = jnp.maximum(self.total_count, 1.0)
        log_scale = self._dimension * jnp.log(2 * jnp.pi * n)
        return jnp.where(self.total_count > 0, -(quadratic / n + log_det + log_scale) / 2, 0.0)


class UnaryEncodingColumnSums(SupportCounts):
    """Column sums of independent bits, 1 with probability p for the true choice, else q: OUE and SUE.

    Covariance of one report D - w w' with w = (p - q) probs and D = diag(m (1 - m) + w^2) (METHODS 3.2).
    With p = 1, q = 0 and a noise variance it is the law of a secure sum of one-hot vectors.
    Local hashing has this law too, q = 1 / hashes, if the hashes of any three choices are independent: then
    two choices other than the true one are supported independently of each other. Values are real vectors
    (..., k), taken as normal.

    Args:
        probs: law of the true choice, shape (..., k).
        p: probability that a report supports the true choice, shape (...).
        q: probability that it supports another, shape (...).
        total_count: how many reports, shape (...).
        noise_variance: of each sum, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    pytree_data_fields = ("noise",)

    def __init__(
        self,
        probs: ArrayLike,
        p: ArrayLike,
        q: ArrayLike,
        total_count: ArrayLike,
        noise_variance: ArrayLike = 0.0,
        *,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(probs, p, q, total_count, validate_args=validate_args)
        noise = jnp.asarray(noise_variance, self.probs.dtype) / jnp.maximum(self.total_count, 1.0)
        self.noise = noise[..., None]

    @property
    def _dimension(self) -> int:
        return self.event_shape[0]

    @property
    def _diagonal(self) -> Array:
        """The diagonal m (1 - m) + w^2, whose squares of probs cancel, and the noise."""
        p, q = self.p[..., None], self.q[..., None]
        return q * (1 - q) + (p - q) * (1 - 2 * q) * self.probs + self.noise

    @property
    def _remainder(self) -> Array:
        """1 - w' D^-1 w, as a sum without cancellation (probs sum to one)."""
        p, q = self.p[..., None], self.q[..., None]
        left = q * (1 - q) + (p - q) * (1 - p - q) * self.probs + self.noise
        return jnp.sum(self.probs * left / self._diagonal, -1)

    @property
    def variance(self) -> Array:
        return self.total_count[..., None] * (self._diagonal - self._root**2)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        white: Array = jax.random.normal(key, self.shape(sample_shape), self.probs.dtype)
        direction = self._root / jnp.sqrt(self._diagonal)
        direction = direction / jnp.linalg.norm(direction, axis=-1, keepdims=True)
        shrink = 1 - jnp.sqrt(self._remainder)[..., None]
        white = white - shrink * direction * jnp.sum(direction * white, -1, keepdims=True)
        return self.mean + white * jnp.sqrt(self.total_count[..., None] * self._diagonal)

    def _energy(self, residual: Array) -> tuple[Array, Array]:
        diagonal, remainder = self._diagonal, self._remainder
        along = jnp.sum(residual * self._root / diagonal, -1)
        quadratic = jnp.sum(residual**2 / diagonal, -1) + along**2 / remainder
        return quadratic, jnp.log(diagonal).sum(-1) + jnp.log(remainder)


class SubsetCounts(SupportCounts):
    """Counts of each choice in the sets of subset selection, taken as normal.

    The true choice is in the set with probability p, the others fill it uniformly: q = (size - p) / (k - 1),
    and the counts sum to size * total_count. The density is on that plane; a value's part off it is ignored.
    With P(i, j in S) = either + b (probs_i + probs_j), the covariance of one report is diag(d) + c 1 1' + e
    (1 probs' + probs 1') - (p - q)^2 probs probs', c < 0; on the plane a multiple of 1 1' changes nothing,
    and -c makes the matrix positive definite. Checked by enumeration. Values are real vectors (..., k).

    Args:
        probs: law of the true choice, shape (..., k).
        p: probability that the set has the true choice, shape (...).
        size: choices in a set, 2 <= size < k.
        total_count: how many reports, shape (...).
        validate_args: whether NumPyro checks arguments and values.

    Raises:
        ValueError: the size is not within these limits.
    """

    pytree_aux_fields = ("size",)

    def __init__(
        self,
        probs: ArrayLike,
        p: ArrayLike,
        size: int,
        total_count: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        choices = jnp.asarray(probs).shape[-1]
        if not 2 <= size < choices:
            raise ValueError(f"size must be at least 2 and less than the {choices} choices, not {size}")
        self.size = size
        q = (size - jnp.asarray(p, jnp.asarray(probs).dtype)) / (choices - 1)
        super().__init__(probs, p, q, total_count, validate_args=validate_args)

    @property
    def _dimension(self) -> int:
        return self.event_shape[0] - 1

    @property
    def _pairs(self) -> tuple[Array, Array]:
        """The numbers c and e of the covariance."""
        s, k, p, q = self.size, self.event_shape[0], self.p, self.q
        with_true = p * (s - 1) / (k - 1)
        either = (p * (s - 1) * (s - 2) + (1 - p) * s * (s - 1)) / ((k - 1) * (k - 2))
        return either - q**2, with_true - either - q * (p - q)

    @property
    def _diagonal(self) -> Array:
        constant, slope = self._pairs
        q, rise = self.q, self.p - self.q
        level, tilt = q * (1 - q) - constant, rise * (1 - 2 * q) - 2 * slope
        return level[..., None] + tilt[..., None] * self.probs

    @property
    def _low(self) -> Array:
        """The covariance less its diagonal, on the vectors 1 and probs (..., 2, 2)."""
        constant, slope = self._pairs
        rise = jnp.broadcast_to(-((self.p - self.q) ** 2), slope.shape)
        return jnp.stack([jnp.stack([constant, slope], -1), jnp.stack([slope, rise], -1)], -2)

    @property
    def variance(self) -> Array:
        m = self.mean / jnp.maximum(self.total_count, 1.0)[..., None]
        return self.total_count[..., None] * m * (1 - m)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw counts in O(k): the covariance is a diagonal and a rank of two, and so is its root, scaled.

        Args:
            key: JAX's random key.
            sample_shape: shape of the sample; the batch's and the event's follow it.

        Returns:
            Real vectors (sample_shape..., ..., k).
        """
        assert key is not None
        white: Array = jax.random.normal(key, self.shape(sample_shape), self.probs.dtype)
        spread = jnp.sqrt(self._diagonal)
        axes, inside = jnp.linalg.qr(
            jnp.stack([jnp.ones_like(self.probs), self.probs], -1) / spread[..., None]
        )
        values, vectors = jnp.linalg.eigh(
            jnp.eye(2, dtype=spread.dtype) + inside @ self._low @ jnp.swapaxes(inside, -1, -2)
        )
        gain = (vectors * (jnp.sqrt(jnp.maximum(values, 0.0)) - 1)[..., None, :]) @ jnp.swapaxes(
            vectors, -1, -2
        )
        along = jnp.einsum("...ia,...i->...a", axes, white)
        white = white + jnp.einsum("...ia,...ab,...b->...i", axes, gain, along)
        return self.mean + jnp.sqrt(self.total_count)[..., None] * spread * white

    def _energy(self, residual: Array) -> tuple[Array, Array]:
        constant, _ = self._pairs
        residual = residual - residual.mean(-1, keepdims=True)
        scaled = jnp.stack([jnp.ones_like(self.probs), self.probs], -1) / self._diagonal[..., None]
        gram = jnp.stack([scaled.sum(-2), jnp.sum(scaled * self.probs[..., None], -2)], -2)
        cross = jnp.einsum("...i,...ia->...a", residual, scaled)
        # On the plane the part along 1 1' changes nothing.
        low = self._low.at[..., 0, 0].set(0.0)
        small = jnp.eye(2, dtype=gram.dtype) + low @ gram
        step = jnp.linalg.solve(small, jnp.einsum("...ab,...b->...a", low, cross)[..., None])[..., 0]
        quadratic = jnp.sum(residual**2 / self._diagonal, -1) - jnp.sum(cross * step, -1)
        determinant = small[..., 0, 0] * small[..., 1, 1] - small[..., 0, 1] * small[..., 1, 0]
        shift = jnp.log(-constant * self.event_shape[0])
        return quadratic, jnp.log(self._diagonal).sum(-1) + jnp.log(determinant) - shift
