"""The likelihood of all analyses: P(reports | public) = Σ over answers of channel × law."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Reported:
    """Compute log P(reports) of each pattern, given the laws in its cell.

    cell: (patterns,). predictors: (patterns, combinations), P(reports | answers) of the private predictors;
    (patterns, 1) of ones without any. same: True if each pattern is a separate cell, in order.
    """

    cell: Array
    predictors: Array
    same: bool = False

    def _placed(self, of_cells: Array) -> Array:
        """Return the cell's entry for each pattern."""
        return of_cells if self.same else of_cells[self.cell]

    def of_private(self, log_shares: Array | None, log_law: Array, outcome: Array) -> Array:
        """Return log P(reports) for a private outcome.

        log_shares: (cells, combinations) of the predictors' answers, None without predictors. log_law:
        (cells, combinations, answers) of the outcome. outcome: (patterns, answers), P(its report | answer).
        """
        cells, _, answers = log_law.shape
        if log_shares is not None and not self.same and cells * answers <= FEW_LAWS:
            return self._of_few_cells(log_shares, log_law, outcome)
        law = self._placed(jnp.exp(log_law))
        # A sum of products is fused with the law. A batch of small matrix products would not be.
        inside = jnp.sum(law * outcome[:, None, :], axis=-1)
        if log_shares is None:
            return jnp.log(jnp.maximum(inside[:, 0], TINY))
        shares = self._placed(jnp.exp(log_shares)) * self.predictors
        return jnp.log(jnp.maximum(jnp.sum(shares * inside, axis=1), TINY))

    def _of_few_cells(self, log_shares: Array, log_law: Array, outcome: Array) -> Array:
        """Return the same, by a product of the channel's vectors with the laws of all cells."""
        both = jnp.exp(log_shares[:, :, None] + log_law)
        of_cells = jnp.einsum("pk,cka->pca", self.predictors, both)
        own = jnp.take_along_axis(of_cells, self.cell[:, None, None], axis=1)[:, 0]
        return jnp.log(jnp.maximum(jnp.sum(own * outcome, axis=1), TINY))

    def of_public(self, log_shares: Array | None, log_density: Array) -> Array:
        """Return log P(reports) for a public outcome. log_density: (patterns, combinations), of its value."""
        if log_shares is None:
            return log_density[:, 0]
        weights = self._placed(log_shares) + jnp.log(jnp.maximum(self.predictors, TINY))
        return jax.scipy.special.logsumexp(weights + log_density, axis=1)
