"""The likelihood of very many different reports of a choice, by matrix products over chunks of rows.

If nearly all reports differ, every gradient goes through all of them. Here it costs one exponential for
each row and choice: log P(report) = log Σ v e^η − log Σ e^η, with the derivative by η
e^η (v / Σ v e^η − 1 / Σ e^η), in chunks small enough for a processor's cache.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import DTypeLike

from inference.analyses.likelihood import TINY
from inference.analyses.table import Values

# Rows of a chunk. With twelve choices, a chunk is 200 KB.
CHUNK = 2000


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
def log_likelihood(coefficients: Array, rows: Rows) -> Array:
    """Return Σ over rows of counts × log P(report), at η = columns @ coefficients (columns, choices − 1).

    The first choice's η is 0. Its derivatives, of any order, are computed in the same pass.
    """

    def add(total: Array, chunk: Rows) -> tuple[Array, None]:
        return total + _told(coefficients, chunk)[0], None

    return jax.lax.scan(add, jnp.zeros((), coefficients.dtype), rows)[0]


@log_likelihood.defjvp
def _log_likelihood_jvp(primals: tuple[Array, Rows], tangents: tuple[Array, Rows]) -> tuple[Array, Array]:
    value, slope = _with_slope(*primals)
    return value, jnp.vdot(slope, tangents[0])


def _with_slope(coefficients: Array, rows: Rows) -> tuple[Array, Array]:
    def add(totals: tuple[Array, Array], chunk: Rows) -> tuple[tuple[Array, Array], None]:
        value, weights, said, all_of = _told(coefficients, chunk)
        turn = weights * (chunk.vectors[1:] * (chunk.counts / said) - chunk.counts / all_of)
        slope = (chunk.columns @ turn.T).astype(coefficients.dtype)
        return (totals[0] + value, totals[1] + slope), None

    start = (jnp.zeros((), coefficients.dtype), jnp.zeros_like(coefficients))
    return jax.lax.scan(add, start, rows)[0]


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
