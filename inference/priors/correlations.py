"""Correlation matrices' Cholesky factors, in coordinates whose gradient is cheap.

The coordinates are NumPyro's: arctanh of the partial correlations, row by row, and the law is LKJ's. The
computation differs: sums of log(1 − tanh² x) with constant weights, by small products of matrices. Running
products and indexed triangles, whose gradients are scattered one element at a time, took most of a
regression's gradient.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from numpyro.distributions import LKJCholesky, biject_to, constraints
from numpyro.distributions.transforms import CorrCholeskyTransform

Matrix = NDArray[np.float64]


class Places(NamedTuple):
    """The places of k = d (d − 1) / 2 coordinates in a factor's d² entries, row by row.

    entries (k, d²): 1 at a coordinate's own entry. before (k, d²): ½ at the entries to the right of it in its
    row, including the diagonal. weights (k,): of log(1 − tanh² x) in the log-determinant.
    """

    entries: Matrix
    before: Matrix
    weights: Matrix


@lru_cache(maxsize=16)
def places(size: int) -> Places:
    """Return the places of the coordinates of a factor (size, size)."""
    rows, columns = np.tril_indices(size, -1)
    entries, before = np.zeros((2, len(rows), size, size))
    at = np.arange(len(rows))
    entries[at, rows, columns] = 1.0
    across = np.arange(size)
    right = (across > columns[:, None]) & (across <= rows[:, None])
    before[at, rows] = np.where(right, 0.5, 0.0)
    # Its own slope, and its part in each later entry of the row, except the diagonal.
    weights = 1 + (rows - 1 - columns) / 2
    return Places(entries.reshape(len(rows), -1), before.reshape(len(rows), -1), weights)


def _log_left(x: Array) -> Array:
    """Return log(1 − tanh² x), without cancellation."""
    size = jnp.abs(x)
    return 2 * (np.log(2.0) - size - jnp.log1p(jnp.exp(-2 * size)))


def _factor(partials: Array, log_left: Array) -> Array:
    """Return the factor (..., d, d) of partial correlations r (..., k), and of log(1 − r²)."""
    (size, _) = CorrCholeskyTransform().forward_shape(partials.shape[-1:])
    where = places(size)
    entries = partials @ where.entries + np.eye(size).ravel()
    return (entries * jnp.exp(log_left @ where.before)).reshape(*partials.shape[:-1], size, size)


class FactorOfPartials(CorrCholeskyTransform):
    """Map arctanh of partial correlations (..., k) to the factor (..., d, d), as CorrCholeskyTransform."""

    @property
    def codomain(self) -> constraints.Constraint:
        return correlation_factor

    def __call__(self, x: Array) -> Array:
        return _factor(jnp.tanh(x), _log_left(x))

    def log_abs_det_jacobian(self, x: Array, y: Array, intermediates: Any = None) -> Array:
        del intermediates
        return _log_left(x) @ places(y.shape[-1]).weights


class _CorrelationFactor(type(constraints.corr_cholesky)):  # type: ignore[misc]
    """Lower-triangular factors with rows of length one, in the coordinates of FactorOfPartials."""


correlation_factor = _CorrelationFactor()


# Symmetric beta laws have a sampler without rejection from this parameter on.
LEAST_WITHOUT_REJECTION = 0.5


class CorrelationFactor(LKJCholesky):
    """LKJCholesky with the same law, sampled in the coordinates of FactorOfPartials.

    concentration: a number.
    """

    support = correlation_factor

    def sample(self, key: Array | None, sample_shape: tuple[int, ...] = ()) -> Array:
        """Draw partial correlations 2 Beta(b, b) − 1 as √(1 − U^(2 / (2 b − 1))) cos 2πV.

        b decreases by ½ with each column. This is Ulrich's method (1984), for b ≥ ½. Its program is much
        smaller than a rejection sampler.
        """
        if self.concentration < LEAST_WITHOUT_REJECTION:
            return super().sample(key, sample_shape)
        assert key is not None
        _, columns = np.tril_indices(self.dimension, -1)
        excess = 2 * self.concentration - 1 + (self.dimension - 2 - columns)
        u, v = jax.random.uniform(key, (2, *sample_shape, len(columns)))
        # For b = ½ the power is infinite, and U to that power is 0.
        with np.errstate(divide="ignore"):
            power = u ** (2 / excess)
        along, across = jnp.cos(2 * np.pi * v), jnp.sin(2 * np.pi * v)
        return _factor(jnp.sqrt(1 - power) * along, jnp.log(across**2 + power * along**2))


@biject_to.register(_CorrelationFactor)
def _to_factor(_constraint: constraints.Constraint) -> FactorOfPartials:
    return FactorOfPartials()
