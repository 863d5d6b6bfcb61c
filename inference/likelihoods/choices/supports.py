"""Exact likelihoods of reports that support sets of choices: patterns, sets, packed rows (METHODS 3.2b).

Every frequency oracle reports a random set S with P(S | x) = c exp(log_odds) if x is in S, else c, with the
same c for every x. So log p(S | probs) = log c + log(1 + (exp(log_odds) - 1) sum of probs over S). For sets
as packed bits, the sum comes with its gradient in one pass, in bounded memory.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample

from inference.likelihoods.common import multinomial_log_prob

# Unpacked bits at a time: near the processor's cache, or plenty of work for an accelerator.
CPU_BITS, ACCELERATOR_BITS = 1 << 18, 1 << 27
_DISTINCT_SHARE = 0.9


class PackedSets(NamedTuple):
    """Sets of k choices in blocks of equal size, each set with how often it occurred.

    rows: (blocks, sets, ceil(k / 8)) uint8, choice j in bit j % 8 of byte j // 8; counts: (blocks, sets),
    0 for the empty rows that fill the last block.
    """

    rows: NDArray[np.uint8]
    counts: NDArray[np.int64]


def pack_sets(rows: NDArray[np.uint8], block_bits: int | None = None) -> PackedSets:
    """Packed rows (n, ceil(k / 8)) as blocks; equal rows are counted once where there are many.

    block_bits: how many bits a block may have, by default what suits the device that JAX computes on.
    """
    rows, counts = _collapsed(np.ascontiguousarray(rows))
    bits = block_bits or (CPU_BITS if jax.default_backend() == "cpu" else ACCELERATOR_BITS)
    size = max(1, min(len(rows), bits // (8 * rows.shape[1])))
    blocks = max(1, -(-len(rows) // size))
    missing = blocks * size - len(rows)
    rows = np.pad(rows, [(0, missing), (0, 0)])
    return PackedSets(rows.reshape(blocks, size, -1), np.pad(counts, (0, missing)).reshape(blocks, size))


def _collapsed(rows: NDArray[np.uint8]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Distinct rows and their counts, unless nearly all rows are distinct."""
    whole = rows.view(f"V{rows.shape[1]}")[:, 0]
    distinct, counts = np.unique(whole, return_counts=True)
    if len(distinct) > _DISTINCT_SHARE * len(rows):
        return rows, np.ones(len(rows), dtype=np.int64)
    return distinct.view(np.uint8).reshape(len(distinct), rows.shape[1]), counts


@jax.custom_jvp
def packed_log_likelihood(probs: Array, excess: Array, rows: Array, counts: Array) -> Array:
    """Sum over all sets of counts × log(1 + excess × sum of probs over the set).

    probs (k,), excess () = e^ε − 1, rows and counts as in PackedSets.
    """
    return _value_and_slopes(probs, excess, rows, counts)[0]


@packed_log_likelihood.defjvp
def _packed_log_likelihood_jvp(
    primals: tuple[Array, Array, Array, Array], tangents: tuple[Array, Array, ArrayLike, ArrayLike]
) -> tuple[Array, Array]:
    value, slopes, excess_slope = _value_and_slopes(*primals)
    return value, slopes @ tangents[0] + excess_slope * tangents[1]


def _value_and_slopes(probs: Array, excess: Array, rows: Array, counts: Array) -> tuple[Array, Array, Array]:
    """The sum, and its derivatives in probs and in excess."""
    choices, dtype = probs.shape[-1], probs.dtype
    padded = jnp.pad(probs, (0, 8 * rows.shape[-1] - choices))
    precision = jax.lax.Precision.HIGHEST

    def step(total: tuple[Array, ...], block: tuple[Array, Array]) -> tuple[Any, None]:
        bits = _unpacked(block[0], dtype)
        inside = jnp.matmul(bits, padded, precision=precision)
        weight = jnp.asarray(block[1], dtype)
        density = 1 + excess * inside
        slopes = jnp.matmul(weight * excess / density, bits, precision=precision)
        terms = (jnp.sum(weight * jnp.log(density)), slopes, jnp.sum(weight * inside / density))
        return tuple(a + b for a, b in zip(total, terms, strict=True)), None

    zero = jnp.zeros((), dtype)
    (value, slopes, excess_slope), _ = jax.lax.scan(
        step, (zero, jnp.zeros_like(padded), zero), (rows, counts)
    )
    return value, slopes[:choices], excess_slope


def _unpacked(rows: Array, dtype: jnp.dtype) -> Array:
    """Bits (sets, 8 × bytes) of packed rows (sets, bytes)."""
    bits = (rows[:, :, None] >> jnp.arange(8, dtype=rows.dtype)) & 1
    return bits.reshape(rows.shape[0], -1).astype(dtype)


class SupportPatterns(Distribution):
    """Counts of the `total_count` reports that support each of the listed sets; exact.

    Values are integer vectors (..., P) that sum to at most `total_count`, the remainder being reports of
    other sets. Cost O(P k), independent of `total_count`. A `log_base` that is known up to a constant leaves
    the posterior as it is when no report is elsewhere.

    Args:
        probs: law of the true choice, shape (..., k).
        log_odds: log of how much likelier a set is when the true choice is in it, shape (...).
        patterns: distinct rows of bits, shape (P, k).
        log_base: log probability of each set when the true choice is not in it, shape (..., P).
        total_count: how many reports, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    arg_constraints = {  # noqa: RUF012
        "probs": constraints.simplex,
        "log_odds": constraints.positive,
        "total_count": constraints.nonnegative,
    }
    pytree_data_fields = ("probs", "log_odds", "total_count", "patterns", "log_base")
    support = constraints.independent(constraints.nonnegative_integer, 1)

    def __init__(
        self,
        probs: ArrayLike,
        log_odds: ArrayLike,
        patterns: ArrayLike,
        log_base: ArrayLike,
        total_count: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.probs = jnp.asarray(probs)
        dtype = self.probs.dtype
        self.patterns, self.log_base = jnp.asarray(patterns, dtype), jnp.asarray(log_base, dtype)
        self.log_odds, self.total_count = jnp.asarray(log_odds, dtype), jnp.asarray(total_count, dtype)
        shape = jnp.broadcast_shapes(
            self.probs.shape[:-1],
            self.log_odds.shape,
            self.log_base.shape[:-1],
            self.total_count.shape,
        )
        super().__init__(shape, (self.patterns.shape[-2],), validate_args=validate_args)

    @property
    def log_pattern_probs(self) -> Array:
        """Log probability that one report supports each listed set, (..., P)."""
        inside = jnp.einsum("ij,...j->...i", self.patterns, self.probs)
        return self.log_base + jnp.log1p(jnp.expm1(self.log_odds)[..., None] * inside)

    @property
    def _log_probs_with_rest(self) -> Array:
        listed = self.log_pattern_probs
        rest = 1 - jnp.exp(listed).sum(-1, keepdims=True)
        # If all patterns are listed, only rounding is left, whose second derivatives would overflow.
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


class UnaryEncodingPatterns(SupportPatterns):
    """Patterns of unary-encoded bits: bit j is 1 with probability p if j is true, else q, independently.

    This is the law of OUE and SUE, and with q = 1 / hashes the law of local hashing under a uniformly random
    hash function (METHODS 3.1). Values are as in SupportPatterns.

    Args:
        probs: law of the true choice, shape (..., k).
        p: probability of a 1 for the true choice, shape (...).
        q: probability of a 1 for another, shape (...).
        patterns: distinct rows of bits, shape (P, k).
        total_count: how many reports, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    arg_constraints = {  # noqa: RUF012
        **SupportPatterns.arg_constraints,
        "p": constraints.open_interval(0.0, 1.0),
        "q": constraints.open_interval(0.0, 1.0),
    }

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
        dtype = jnp.asarray(probs).dtype
        bits = jnp.asarray(patterns, dtype)
        self.p, self.q = (jnp.asarray(x, dtype) for x in (p, q))
        p, q = self.p[..., None], self.q[..., None]
        ones = bits.sum(-1)
        log_base = ones * jnp.log(q) + (bits.shape[-1] - ones - 1) * jnp.log1p(-q) + jnp.log1p(-p)
        log_odds = (jnp.log(p) + jnp.log1p(-q) - jnp.log(q) - jnp.log1p(-p))[..., 0]
        super().__init__(probs, log_odds, bits, log_base, total_count, validate_args=validate_args)


class PackedSupportSets(Distribution):
    """All reports as packed rows: the sets of choices that they support, in one pass and bounded memory.

    A report's density, relative to its law if it supports no choice, is 1 + (exp(log_odds) - 1) sum of probs
    over its set: all that the mechanism's law tells about the choices. Density and gradient come from the
    same pass over the rows, on the device that JAX computes on. Values are (blocks, sets, bytes) as in
    `PackedSets`. To simulate reports, use the mechanism: a set's own law is not stated here.

    Args:
        probs: law of the true choice, shape (k,).
        log_odds: log of how much likelier a set is when the true choice is in it.
        counts: how often each set occurred, shape (blocks, sets), as in `PackedSets`.
        validate_args: whether NumPyro checks arguments and values.
    """

    arg_constraints = {"probs": constraints.simplex, "log_odds": constraints.positive}  # noqa: RUF012
    pytree_data_fields = ("probs", "log_odds", "counts")
    support = constraints.independent(constraints.nonnegative_integer, 3)

    def __init__(
        self,
        probs: ArrayLike,
        log_odds: ArrayLike,
        counts: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.probs, self.counts = jnp.asarray(probs), jnp.asarray(counts)
        self.log_odds = jnp.asarray(log_odds, self.probs.dtype)
        size = -(-self.probs.shape[-1] // 8)
        super().__init__((), (*self.counts.shape, size), validate_args=validate_args)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        raise NotImplementedError("simulate reports with their mechanism")

    @validate_sample
    def log_prob(self, value: ArrayLike, intermediates: list[Any] | None = None) -> Array:
        del intermediates
        return packed_log_likelihood(self.probs, jnp.expm1(self.log_odds), jnp.asarray(value), self.counts)
