"""Choices whose reports fall in few cells: counts are sufficient, exactly multinomial (METHODS 3.3)."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.linalg import hadamard


def response_cells(probs: Array, p: float, q: float) -> Array:
    """Return log probabilities (k,) of the reports of k-ary randomized response. Yes/no is k = 2.

    Args:
        probs: law of the true choice, shape (k,).
        p: probability of the truth.
        q: probability of each other answer: p + (k - 1) q is 1.
    """
    return jnp.log(q + (p - q) * probs)


def hadamard_cells(probs: Array, p: float, blocks: int, width: int) -> Array:
    """Return log probabilities of the columns that Hadamard response reports, blocks side by side.

    Choice x is row x mod (width - 1) + 1 of block x div (width - 1). With probability p a report is in a
    column of the choice's block in which that row of Sylvester's matrix is 1, and in each of the 2 blocks - 1
    other halves of blocks with probability (1 - p) / (2 blocks - 1). One fast Walsh-Hadamard transform gives
    all cells: O(blocks width log width).

    Args:
        probs: law of the true choice, shape (k,), of at most blocks * (width - 1) choices.
        p: probability of the choice's own half of its block.
        blocks: how many blocks.
        width: columns of a block, a power of two.
    """
    rows = jnp.pad(probs, (0, blocks * (width - 1) - len(probs))).reshape(blocks, width - 1)
    rows = jnp.pad(rows, [(0, 0), (1, 0)])
    share = rows.sum(-1, keepdims=True)
    # The transform is within [-share, share]; its rounding must not leave it.
    even = jnp.clip((share + walsh_hadamard(rows)) / 2, 0.0, share).ravel()
    elsewhere = (1 - p) / (2 * blocks - 1)
    return jnp.log(elsewhere + (p - elsewhere) * even) - np.log(width / 2)


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
