"""Choices whose reports fall in few cells: counts are sufficient, exactly multinomial (METHODS 3.3)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions import constraints
from numpyro.distributions.util import not_jax_tracer
from scipy.linalg import hadamard

from inference.likelihoods.common import CellCounts


class RandomizedResponseCounts(CellCounts):
    """Counts of k-ary randomized response; exact.

    Counts are sufficient: multinomial with cells q + (p - q) probs (METHODS 3.3). Values are integer vectors
    (..., k) that sum to `total_count`. Yes/no is k = 2.

    Args:
        probs: law of the true choice, shape (..., k).
        p: probability of the truth, shape (...).
        q: probability of each other answer, shape (...).
        total_count: how many reports, shape (...).
        validate_args: whether NumPyro checks arguments and values.

    Raises:
        ValueError: p + (k - 1) q is not 1.
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


class HadamardCounts(CellCounts):
    """Counts of the columns that Hadamard response reports, blocks of `width` columns side by side.

    Choice x is row x mod (width - 1) + 1 of block x div (width - 1). With probability p a report is in a
    column of the choice's block in which that row of Sylvester's matrix is 1, and in each of the 2 blocks - 1
    other halves of blocks with probability (1 - p) / (2 blocks - 1). One fast Walsh-Hadamard transform gives
    all cells: O(blocks width log width). Values are integer vectors (..., blocks * width) that sum to
    `total_count`.

    Args:
        probs: law of the true choice, shape (..., k).
        p: probability of the choice's own half of its block, shape (...).
        blocks: how many blocks.
        width: columns of a block, a power of two.
        total_count: how many reports, shape (...).
        validate_args: whether NumPyro checks arguments and values.

    Raises:
        ValueError: the choices do not fit.
    """

    arg_constraints = {**CellCounts.arg_constraints, "probs": constraints.simplex}  # noqa: RUF012
    pytree_data_fields = ("probs", "p", "total_count")
    pytree_aux_fields = ("blocks", "width")

    def __init__(
        self,
        probs: ArrayLike,
        p: ArrayLike,
        blocks: int,
        width: int,
        total_count: ArrayLike,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self.probs, self.p, self.total_count = jnp.asarray(probs), jnp.asarray(p), total_count
        self.blocks, self.width = blocks, width
        if width & (width - 1) or blocks * (width - 1) < self.probs.shape[-1]:
            raise ValueError(
                f"{self.probs.shape[-1]} choices are not rows of {blocks} blocks of width {width}"
            )
        shape = jnp.broadcast_shapes(self.probs.shape[:-1], jnp.shape(p), jnp.shape(total_count))
        super().__init__(shape, (blocks * width,), validate_args=validate_args)

    @property
    def log_cell_probs(self) -> Array:
        batch, choices = self.probs.shape[:-1], self.probs.shape[-1]
        missing = self.blocks * (self.width - 1) - choices
        rows = jnp.pad(self.probs, [(0, 0)] * len(batch) + [(0, missing)])
        rows = rows.reshape(*batch, self.blocks, self.width - 1)
        rows = jnp.pad(rows, [(0, 0)] * (len(batch) + 1) + [(1, 0)])
        share = rows.sum(-1, keepdims=True)
        # The transform is within [-share, share]; its rounding must not leave it.
        even = jnp.clip((share + walsh_hadamard(rows)) / 2, 0.0, share).reshape(*batch, -1)
        p = jnp.asarray(self.p, self.probs.dtype)[..., None]
        elsewhere = (1 - p) / (2 * self.blocks - 1)
        return jnp.log(elsewhere + (p - elsewhere) * even) - np.log(self.width / 2)


def walsh_hadamard(x: Array) -> Array:
    """Multiply the last axis, of a length K that is a power of two, by Sylvester's matrix.

    The matrix is a Kronecker product, so it is applied in factors of at most 64: O(K log K) in few matrix
    products, which compile fast and use the processor well.
    """
    shape, bits = x.shape, x.shape[-1].bit_length() - 1
    done = 1
    while bits:
        size = 1 << min(bits, 6)
        signs = jnp.asarray(hadamard(size), x.dtype)
        x = x.reshape(*shape[:-1], -1, size, done)
        x = jnp.einsum("ij,...ajb->...aib", signs, x, precision=jax.lax.Precision.HIGHEST)
        bits, done = bits - min(bits, 6), done * size
    return x.reshape(shape)
