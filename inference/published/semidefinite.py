"""Symmetric matrices that noise made indefinite."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array


def with_absolute_eigenvalues(matrix: Array) -> Array:
    """Eigenvalues become their absolute values (DCA's authors), (p, p) symmetric."""
    values, vectors = jnp.linalg.eigh(matrix)
    return jnp.asarray((vectors * jnp.abs(values)) @ vectors.T)


def root(matrix: Array) -> Array:
    """F with F Fᵀ = the nearest semidefinite matrix."""
    values, vectors = jnp.linalg.eigh(matrix)
    return jnp.asarray(vectors * jnp.sqrt(jnp.maximum(values, 0.0)))
