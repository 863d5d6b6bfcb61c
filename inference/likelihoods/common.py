"""Independent reports counted by cell: a multinomial that stays accurate for many millions of reports."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import gammaln, xlogy
from jax.typing import ArrayLike
from numpyro.distributions import Distribution, constraints
from numpyro.distributions.util import validate_sample

_STIRLING_FROM = 16.0
# Reports whose density is computed at once: 1.4 MB a number for ten features, in addition to the reports.
CHUNK = 1 << 14


def summed_in_chunks(density: Callable[[Array], Array], reports: Array) -> Array:
    """Sum the density over the rows of reports (n, …), in memory that does not depend on n.

    The gradient's intermediate values of a chunk are recomputed on the way back, rather than kept for all.
    """
    whole = len(reports) // CHUNK
    if whole < 1 or len(reports) == CHUNK:
        return jnp.sum(density(reports))

    @jax.checkpoint
    def of_chunk(place: Array) -> Array:
        # Sliced here, because inputs of the function are kept for every chunk.
        return jnp.sum(density(jax.lax.dynamic_slice_in_dim(reports, place * CHUNK, CHUNK)))

    def add(total: Array, place: Array) -> tuple[Array, None]:
        return total + of_chunk(place), None

    rest = jnp.sum(density(reports[whole * CHUNK :]))
    return jax.lax.scan(add, rest, jnp.arange(whole))[0]


def _stirling_remainder(count: Array) -> Array:
    """log(count!) - count log(count) + count, without the cancellation for large counts."""
    large = count >= _STIRLING_FROM
    few, many = jnp.where(large, 1.0, count), jnp.where(large, count, _STIRLING_FROM)
    inverse = 1 / many
    series = inverse * (1 / 12 - inverse**2 * (1 / 360 - inverse**2 * (1 / 1260 - inverse**2 / 1680)))
    exact = gammaln(few + 1) - xlogy(few, few) + few
    return jnp.where(large, jnp.log(2 * jnp.pi * many) / 2 + series, exact)


def multinomial_log_prob(log_probs: Array, counts: Array) -> Array:
    """Log probability of counts (..., cells), their multinomial coefficient included.

    It is summed as deviations from the counts' own frequencies: sum of counts times log probabilities is
    of size n, which in float32 would leave no digits for the differences between parameters.
    """
    total = jnp.sum(counts, axis=-1, keepdims=True)
    seen = counts > 0
    frequency = jnp.where(seen, counts, 1.0) / jnp.maximum(total, 1.0)
    deviations = jnp.where(seen, counts * (jnp.where(seen, log_probs, 0.0) - jnp.log(frequency)), 0.0)
    coefficient = _stirling_remainder(total[..., 0]) - _stirling_remainder(counts).sum(-1)
    return coefficient + deviations.sum(-1)


class CellCounts(Distribution):
    """Counts of independent reports by cell; exact.

    Values are integer count vectors (..., cells) that sum to `total_count`. The log-density includes the
    multinomial coefficient: it does not depend on the parameters, and with it the law sums to one, so that
    models of different coarseness can be compared.

    Args:
        log_cell_probs: log probability that one report falls in each cell, shape (..., cells).
        total_count: how many reports, shape (...).
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer}  # noqa: RUF012
    pytree_data_fields = ("log_cell_probs", "total_count")

    def __init__(self, log_cell_probs: Array, total_count: ArrayLike) -> None:
        self.log_cell_probs, self.total_count = log_cell_probs, total_count
        shape = jnp.broadcast_shapes(log_cell_probs.shape[:-1], jnp.shape(total_count))
        super().__init__(shape, log_cell_probs.shape[-1:])

    @property
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def cell_probs(self) -> Array:
        """Probability that one report falls in each cell, (..., cells)."""
        return jnp.exp(self.log_cell_probs)

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        assert key is not None
        probs = jnp.broadcast_to(self.cell_probs, self.shape(sample_shape))
        total = jnp.broadcast_to(jnp.asarray(self.total_count, probs.dtype), probs.shape[:-1])
        counts: Array = jax.random.multinomial(key, total, probs, dtype=probs.dtype)
        return counts.astype(int)

    @validate_sample
    def log_prob(self, value: ArrayLike) -> Array:
        log_probs = self.log_cell_probs
        return multinomial_log_prob(log_probs, jnp.asarray(value, log_probs.dtype))
