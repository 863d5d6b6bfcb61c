"""The exact likelihood of reports that support sets of choices, as packed rows (METHODS 3.2b).

Every frequency oracle reports a random set S with P(S | x) = c exp(log_odds) if x is in S, else c, with the
same c for every x. So log p(S | probs) = log c + log(1 + (exp(log_odds) - 1) sum of probs over S). For sets
as packed bits, the sum comes with its gradient in one pass, in bounded memory.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample

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
    """

    arg_constraints = {"probs": constraints.simplex, "log_odds": constraints.positive}  # noqa: RUF012
    pytree_data_fields = ("probs", "log_odds", "counts")
    support = constraints.independent(constraints.nonnegative_integer, 3)

    def __init__(self, probs: ArrayLike, log_odds: ArrayLike, counts: ArrayLike) -> None:
        self.probs, self.counts = jnp.asarray(probs), jnp.asarray(counts)
        self.log_odds = jnp.asarray(log_odds, self.probs.dtype)
        size = -(-self.probs.shape[-1] // 8)
        super().__init__((), (*self.counts.shape, size))

    @validate_sample
    def log_prob(self, value: ArrayLike) -> Array:
        return packed_log_likelihood(self.probs, jnp.expm1(self.log_odds), jnp.asarray(value), self.counts)

    def log_densities(self, value: ArrayLike) -> Array:
        """Compute the log density of one report of each set.

        Args:
            value: sets as in `PackedSets`.

        Returns:
            Log densities (blocks, sets), up to a term that does not depend on `probs`.
        """
        padded = jnp.pad(self.probs, (0, 8 * self.event_shape[-1] - self.probs.shape[-1]))
        excess = jnp.expm1(self.log_odds)
        return jax.lax.map(
            lambda rows: jnp.log1p(excess * (_unpacked(rows, padded.dtype) @ padded)), jnp.asarray(value)
        )
