"""Wishart and inverse-Wishart draws by Bartlett's decomposition, never forming an inverse."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import solve_triangular


def bartlett(key: Array, freedom: Array, size: int) -> Array:
    """Lower A with AAᵀ ~ Wishart(I, freedom), freedom > size − 1."""
    diagonal, below = jax.random.split(key)
    squares = 2 * jax.random.gamma(diagonal, (freedom - jnp.arange(size)) / 2)
    return jnp.tril(jax.random.normal(below, (size, size)), -1) + jnp.diag(jnp.sqrt(squares))


def inverse_wishart(key: Array, scatter: Array, freedom: Array) -> Array:
    """A draw (d, d) of the inverse Wishart law whose mean is scatter / (freedom − d − 1)."""
    size = scatter.shape[-1]
    # scatter = LLᵀ and W = AAᵀ give (L⁻ᵀ W L⁻¹)⁻¹ = (L A⁻ᵀ)(L A⁻ᵀ)ᵀ.
    factor = solve_triangular(bartlett(key, freedom, size), jnp.linalg.cholesky(scatter).T, lower=True)
    return factor.T @ factor


def log_determinant(factor: Array) -> Array:
    """log |LLᵀ| of lower factors (…, d, d)."""
    return 2 * jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1)).sum(-1)
