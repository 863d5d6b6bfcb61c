"""Noisy sums of squares made positive semidefinite, in the two ways of the papers."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def nearest_semidefinite(matrix: Array) -> Array:
    """Negative eigenvalues become 0 (DPBLR): the nearest such matrix, (p, p) symmetric."""
    values, vectors = jnp.linalg.eigh(matrix)
    return jnp.asarray((vectors * jnp.maximum(values, 0.0)) @ vectors.T)


def with_absolute_eigenvalues(matrix: Array) -> Array:
    """Eigenvalues become their absolute values (DCA's authors), (p, p) symmetric."""
    values, vectors = jnp.linalg.eigh(matrix)
    return jnp.asarray((vectors * jnp.abs(values)) @ vectors.T)


def root(matrix: Array) -> Array:
    """F with F Fᵀ = the nearest semidefinite matrix."""
    values, vectors = jnp.linalg.eigh(matrix)
    return jnp.asarray(vectors * jnp.sqrt(jnp.maximum(values, 0.0)))
