"""The likelihood of all analyses: P(reports | public) = Σ over answers of channel × law."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

# Replaces log 0, which has no gradient.
TINY = 1e-300
# The limit of cells × answers of the outcome for one matrix product of every pattern with every cell. That
# is ten times as fast as gathering each pattern's laws, whose gradient must scatter them back.
FEW_LAWS = 32


def joint(vectors: Sequence[Any]) -> Any:
    """Return P(reports | answers) of patterns (patterns, combinations of answers), the last column fastest.

    vectors: (patterns, answers) of each column, as arrays of NumPy or JAX.
    """
    found = vectors[0]
    for own in vectors[1:]:
        found = (found[:, :, None] * own[:, None, :]).reshape(len(own), -1)
    return found


def placed(of_cells: Array, cell: Array) -> Array:
    """Return the cell's entry for each pattern (patterns, …). With as many cells, each pattern is one."""
    return of_cells if len(of_cells) == len(cell) else of_cells[cell]


def log_private(
    cell: Array, predictors: Array, log_shares: Array | None, log_law: Array, outcome: Array
) -> Array:
    """Return log P(reports) of each pattern for a private outcome.

    cell: (patterns,). predictors: (patterns, combinations), P(reports | answers) of the private predictors;
    (patterns, 1) of ones without any. log_shares: (cells, combinations) of the predictors' answers, None
    without predictors. log_law: (cells, combinations, answers) of the outcome. outcome: (patterns, answers),
    P(its report | answer).
    """
    cells, _, answers = log_law.shape
    if log_shares is not None and cells != len(cell) and cells * answers <= FEW_LAWS:
        # A product of the channel's vectors with the laws of all cells.
        both = jnp.exp(log_shares[:, :, None] + log_law)
        of_cells = jnp.einsum("pk,cka->pca", predictors, both)
        own = jnp.take_along_axis(of_cells, cell[:, None, None], axis=1)[:, 0]
        return jnp.log(jnp.maximum(jnp.sum(own * outcome, axis=1), TINY))
    # A sum of products is fused with the law. A batch of small matrix products would not be.
    inside = jnp.sum(placed(jnp.exp(log_law), cell) * outcome[:, None, :], axis=-1)
    if log_shares is None:
        return jnp.log(jnp.maximum(inside[:, 0], TINY))
    shares = placed(jnp.exp(log_shares), cell) * predictors
    return jnp.log(jnp.maximum(jnp.sum(shares * inside, axis=1), TINY))


def log_public(cell: Array, predictors: Array, log_shares: Array | None, log_density: Array) -> Array:
    """Return the same for a public outcome. log_density: (patterns, combinations), of its value."""
    if log_shares is None:
        return log_density[:, 0]
    weights = placed(log_shares, cell) + jnp.log(jnp.maximum(predictors, TINY))
    return jax.scipy.special.logsumexp(weights + log_density, axis=1)
