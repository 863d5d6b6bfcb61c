"""Correlation matrices' Cholesky factors, in coordinates whose gradient is cheap.

The coordinates are NumPyro's: arctanh of the partial correlations, row by row, and the law is LKJ's. They are
computed otherwise: as sums of log(1 − tanh² x) with constant weights, by small products of matrices. Running
products and picked triangles, of which gradients are scattered one element at a time, took most of a
regression's gradient.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from numpyro.distributions import LKJCholesky, biject_to, constraints
from numpyro.distributions.transforms import CorrCholeskyTransform, Transform

Matrix = NDArray[np.float64]


class Places(NamedTuple):
    """Of k = d (d − 1) / 2 coordinates in a factor's d² entries, row by row.

    entries (k, d²): 1 where a coordinate's own entry is. before (k, d²): ½ at the entries to the right of it
    in its row, the diagonal's too. weights (k,): of log(1 − tanh² x) in the log-determinant.
    """

    entries: Matrix
    before: Matrix
    weights: Matrix


@lru_cache(maxsize=16)
def places(size: int) -> Places:
    """Where the coordinates of a factor (size, size) are."""
    rows, columns = np.tril_indices(size, -1)
    entries, before = np.zeros((2, len(rows), size, size))
    at = np.arange(len(rows))
    entries[at, rows, columns] = 1.0
    across = np.arange(size)
    right = (across > columns[:, None]) & (across <= rows[:, None])
    before[at, rows] = np.where(right, 0.5, 0.0)
    # Its own slope, and its part in each later entry of the row but the diagonal's.
    weights = 1 + (rows - 1 - columns) / 2
    return Places(entries.reshape(len(rows), -1), before.reshape(len(rows), -1), weights)


def _log_left(x: Array) -> Array:
    """log(1 − tanh² x), without cancellation."""
    size = jnp.abs(x)
    return 2 * (np.log(2.0) - size - jnp.log1p(jnp.exp(-2 * size)))


class FactorOfPartials(Transform):
    """From arctanh of partial correlations (..., k) to the factor (..., d, d), as CorrCholeskyTransform."""

    domain = constraints.real_vector

    @property
    def codomain(self) -> constraints.Constraint:
        return correlation_factor

    def __call__(self, x: Array) -> Array:
        (size,) = self.forward_shape(x.shape[-1:])[:1]
        where = places(size)
        entries = jnp.tanh(x) @ where.entries + np.eye(size).ravel()
        return (entries * jnp.exp(_log_left(x) @ where.before)).reshape(*x.shape[:-1], size, size)

    def _inverse(self, y: Array) -> Array:
        return CorrCholeskyTransform().inv(y)

    def log_abs_det_jacobian(self, x: Array, y: Array, intermediates: Any = None) -> Array:
        del intermediates
        return _log_left(x) @ places(y.shape[-1]).weights

    def forward_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return CorrCholeskyTransform().forward_shape(shape)

    def inverse_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return CorrCholeskyTransform().inverse_shape(shape)

    def tree_flatten(self) -> tuple[tuple[()], tuple[tuple[()], dict[str, Any]]]:
        return (), ((), {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FactorOfPartials)

    __hash__ = None  # type: ignore[assignment]


class _CorrelationFactor(type(constraints.corr_cholesky)):  # type: ignore[misc]
    """Lower-triangular factors with rows of length one, whose coordinates are FactorOfPartials'."""


correlation_factor = _CorrelationFactor()


class CorrelationFactor(LKJCholesky):
    """LKJCholesky, to be sampled in the coordinates of FactorOfPartials: the law is the same."""

    support = correlation_factor


@biject_to.register(_CorrelationFactor)
def _to_factor(_constraint: constraints.Constraint) -> FactorOfPartials:
    return FactorOfPartials()
