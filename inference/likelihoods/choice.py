"""Likelihoods of perturbed choices, from counts (METHODS 3)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import not_jax_tracer, validate_sample

from .counts import CellCounts, multinomial_log_prob


class RandomizedResponseCounts(CellCounts):
    """Counts of k-ary randomized response: p is the probability of the truth, q of each other answer.

    `probs` (..., k) is the law of the true choice; values are integer vectors (..., k) that sum to
    `total_count`. Counts are sufficient: multinomial with cells q + (p - q) probs (METHODS 3.3). Yes/no is
    k = 2. Raises ValueError unless p + (k - 1) q = 1.
    """

    arg_constraints = {**CellCounts.arg_constraints, "probs": constraints.simplex}  # noqa: RUF012
    pytree_data_fields = ("probs", "p", "q", "total_count")

    def __init__(
        self,
        probs: ArrayLike,
        p: ArrayLike,
        q: ArrayLike,
        total_count: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.probs, self.total_count = jnp.asarray(probs), total_count
        self.p, self.q = jnp.asarray(p), jnp.asarray(q)
        total = p + (self.probs.shape[-1] - 1) * q
        if not_jax_tracer(total) and not np.allclose(total, 1, rtol=0, atol=1e-6):
            raise ValueError(f"p + (k - 1) q must be 1, not {total}")
        shape = jnp.broadcast_shapes(
            self.probs.shape[:-1], jnp.shape(p), jnp.shape(q), jnp.shape(total_count)
        )
        super().__init__(shape, self.probs.shape[-1:], validate_args=validate_args)

    @property
    def log_cell_probs(self) -> Array:
        p, q = (jnp.asarray(x, self.probs.dtype)[..., None] for x in (self.p, self.q))
        return jnp.log(q + (p - q) * self.probs)


class UnaryEncoding(Distribution):
    """What the laws of unary-encoded reports share: bit j is 1 with probability p if j is true, else q."""

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.simplex,
        "p": constraints.open_interval(0.0, 1.0),
        "q": constraints.open_interval(0.0, 1.0),
        "total_count": constraints.nonnegative,
    }

    def __init__(
        self,
        probs: ArrayLike,
        p: ArrayLike,
        q: ArrayLike,
        total_count: ArrayLike,
        *,
        events: int | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.probs = jnp.asarray(probs)
        dtype = self.probs.dtype
        self.p, self.q, self.total_count = (jnp.asarray(x, dtype) for x in (p, q, total_count))
        shape = jnp.broadcast_shapes(
            self.probs.shape[:-1], self.p.shape, self.q.shape, self.total_count.shape
        )
        event_shape = self.probs.shape[-1:] if events is None else (events,)
        super().__init__(shape, event_shape, validate_args=validate_args)


class UnaryEncodingPatterns(UnaryEncoding):
    """How many of `total_count` unary-encoded reports show each of the listed bit patterns; exact.

    `probs` (..., k), `patterns` (P, k) distinct rows of bits; values are integer vectors (..., P) that sum
    to at most `total_count`, the remainder being reports with other patterns. List the patterns that
    occurred: log p = sum counts log(1 + (r - 1) patterns @ probs) + const, r = p (1-q) / (q (1-p))
    (METHODS 3.1), with every constant included. Cost O(P k), independent of `total_count`.
    """

    pytree_data_fields = ("patterns",)
    support = constraints.independent(constraints.nonnegative_integer, 1)

    def __init__(
        self,
        probs: ArrayLike,
        p: ArrayLike,
        q: ArrayLike,
        patterns: ArrayLike,
        total_count: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.patterns = jnp.asarray(patterns, jnp.asarray(probs).dtype)
        super().__init__(
            probs, p, q, total_count, events=self.patterns.shape[-2], validate_args=validate_args
        )

    @property
    def log_pattern_probs(self) -> Array:
        """Log probability that one report shows each listed pattern, (..., P)."""
        p, q = self.p[..., None], self.q[..., None]
        ones = self.patterns.sum(-1)
        zeros = self.patterns.shape[-1] - ones
        without_choice = ones * jnp.log(q) + (zeros - 1) * jnp.log1p(-q) + jnp.log1p(-p)
        excess = (p - q) / (q * (1 - p))
        return without_choice + jnp.log1p(excess * jnp.einsum("ij,...j->...i", self.patterns, self.probs))

    @property
    def _log_probs_with_rest(self) -> Array:
        listed = self.log_pattern_probs
        rest = 1 - jnp.exp(listed).sum(-1, keepdims=True)
        # All patterns listed leave nothing but rounding, whose second derivatives would overflow.
        tiny = np.finfo(rest.dtype).tiny
        positive = rest > tiny
        log_rest = jnp.where(positive, jnp.log(jnp.where(positive, rest, 1.0)), np.log(tiny))
        return jnp.concatenate([listed, log_rest], -1)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        shape = sample_shape + self.batch_shape
        probs = jnp.broadcast_to(jnp.exp(self._log_probs_with_rest), (*shape, self.event_shape[0] + 1))
        total = jnp.broadcast_to(self.total_count, shape)
        counts: Array = jax.random.multinomial(key, total, probs, dtype=probs.dtype)
        return counts[..., :-1].astype(int)

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        counts = jnp.asarray(value, self.probs.dtype)
        rest = (self.total_count - counts.sum(-1))[..., None]
        return multinomial_log_prob(self._log_probs_with_rest, jnp.concatenate([counts, rest], -1))


class UnaryEncodingColumnSums(UnaryEncoding):
    """Column sums of `total_count` unary-encoded reports, by their normal approximation, in O(k).

    `probs` (..., k); values are real vectors (..., k). Mean n m with m = q + (p - q) probs, covariance
    n (D - w w') with w = (p - q) probs and D = diag(m (1 - m) + w^2) (METHODS 3.2). With no reports the
    density is 1.
    """

    support = constraints.real_vector

    @property
    def _root(self) -> Array:
        return (self.p - self.q)[..., None] * self.probs

    @property
    def _diagonal(self) -> Array:
        """m (1 - m) + w^2, whose squares of probs cancel."""
        p, q = self.p[..., None], self.q[..., None]
        return q * (1 - q) + (p - q) * (1 - 2 * q) * self.probs

    @property
    def _remainder(self) -> Array:
        """1 - w' D^-1 w, as a sum without cancellation (probs sum to one)."""
        p, q = self.p[..., None], self.q[..., None]
        left = q * (1 - q) + (p - q) * (1 - p - q) * self.probs
        return jnp.sum(self.probs * left / self._diagonal, -1)

    @property
    def mean(self) -> Array:
        return self.total_count[..., None] * (self.q[..., None] + self._root)

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

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        residual, diagonal, remainder = jnp.asarray(value) - self.mean, self._diagonal, self._remainder
        n = jnp.maximum(self.total_count, 1.0)
        along = jnp.sum(residual * self._root / diagonal, -1)
        quadratic = (jnp.sum(residual**2 / diagonal, -1) + along**2 / remainder) / n
        log_scale = self.event_shape[0] * jnp.log(2 * jnp.pi * n)
        log_det = jnp.log(diagonal).sum(-1) + jnp.log(remainder) + log_scale
        return jnp.where(self.total_count > 0, -(quadratic + log_det) / 2, 0.0)
