"""The likelihood of all analyses: P(reports | public) = Σ over answers of channel × law.

If nearly all reports of a choice differ, every gradient goes through all of them. By rows, a gradient costs
one exponential for each row and choice: log P(report) = log Σ v e^η − log Σ e^η, with the derivative by η
e^η (v / Σ v e^η − 1 / Σ e^η), in chunks small enough for a processor's cache.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import DTypeLike

from inference.analyses.table import Values

# Replaces log 0, which has no gradient.
TINY = 1e-300
# The limit of cells × answers of the outcome for one matrix product of every pattern with every cell. That
# is ten times as fast as gathering each pattern's laws, whose gradient must scatter them back.
FEW_LAWS = 32
# Rows of a chunk. With twelve choices, a chunk is 200 KB.
CHUNK = 2000


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


class Rows(NamedTuple):
    """Reports as chunks (chunks, …, rows) of equal length, padded with rows of count 0.

    columns: (chunks, columns, rows) of the design. vectors: (chunks, choices, rows), P(report | choice).
    counts: (chunks, rows). The dtype is the precision of each row's probability; sums are always in float64.
    """

    columns: Array
    vectors: Array
    counts: Array


def rows_of(columns: Values, vectors: Values, counts: Values, dtype: DTypeLike) -> dict[str, Values]:
    """Divide columns (rows, columns), vectors (rows, choices) and counts (rows,) into a program's chunks."""
    chunks = -(-len(counts) // CHUNK)
    length = -(-len(counts) // chunks)
    missing = chunks * length - len(counts)

    def chunked(values: Values, fill: float) -> Values:
        whole = np.concatenate([values, np.full((missing, values.shape[1]), fill)])
        return np.ascontiguousarray(whole.reshape(chunks, length, -1).swapaxes(1, 2), dtype)

    return {
        "row_columns": chunked(columns, 0.0),
        "row_vectors": chunked(vectors, 1.0),
        "row_counts": chunked(counts[:, None], 0.0)[:, 0],
    }


@jax.custom_jvp
def log_of_rows(coefficients: Array, rows: Rows) -> Array:
    """Return Σ over rows of counts × log P(report), at η = columns @ coefficients (columns, choices − 1).

    The first choice's η is 0. Its derivatives, of any order, are computed in the same pass.
    """

    def add(total: Array, chunk: Rows) -> tuple[Array, None]:
        return total + _told(coefficients, chunk)[0], None

    return jax.lax.scan(add, jnp.zeros((), coefficients.dtype), rows)[0]


@log_of_rows.defjvp
def _log_of_rows_jvp(primals: tuple[Array, Rows], tangents: tuple[Array, Rows]) -> tuple[Array, Array]:
    coefficients, rows = primals

    def add(totals: tuple[Array, Array], chunk: Rows) -> tuple[tuple[Array, Array], None]:
        value, weights, said, all_of = _told(coefficients, chunk)
        turn = weights * (chunk.vectors[1:] * (chunk.counts / said) - chunk.counts / all_of)
        slope = (chunk.columns @ turn.T).astype(coefficients.dtype)
        return (totals[0] + value, totals[1] + slope), None

    start = (jnp.zeros((), coefficients.dtype), jnp.zeros_like(coefficients))
    value, slope = jax.lax.scan(add, start, rows)[0]
    return value, jnp.vdot(slope, tangents[0])


def _told(coefficients: Array, chunk: Rows) -> tuple[Array, Array, Array, Array]:
    """Return a chunk's log-likelihood, e^η of all choices but the first, Σ v e^η and Σ e^η (both (rows,))."""
    eta = coefficients.T.astype(chunk.columns.dtype) @ chunk.columns
    top = jax.lax.stop_gradient(jnp.maximum(jnp.max(eta, axis=0), 0.0))
    first, weights = jnp.exp(-top), jnp.exp(eta - top)
    all_of = first + jnp.sum(weights, axis=0)
    said = first * chunk.vectors[0] + jnp.sum(weights * chunk.vectors[1:], axis=0)
    said = jnp.maximum(said, max(TINY, float(jnp.finfo(said.dtype).tiny)))
    value = jnp.sum((chunk.counts * jnp.log(said / all_of)).astype(coefficients.dtype))
    return value, weights, said, all_of
