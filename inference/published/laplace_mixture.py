"""Laplace noise as normal noise of random variance (DPBLR II-B5, after Park and Casella 2008)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array


def draw_first_variances(key: Array, scale: Array) -> Array:
    """ω² ~ Exp(mean 2b²): N(0, ω²) is then Laplace of scale b."""
    return 2 * scale**2 * jax.random.exponential(key, jnp.shape(scale))


def draw_variances(key: Array, noise: Array, scale: Array) -> Array:
    """ω² given the noise; 1/ω² ~ inverse Gaussian(mean 1/(b|noise|), shape 1/b²). All of one shape.

    1/Y = Y/μ² + χ²/λ in law for Y ~ IG(μ, λ), so ω² is IG(b|noise|, noise²) + b²χ²: finite for noise → 0.
    """
    smaller, which, square = jax.random.split(key, 3)
    size = jnp.maximum(jnp.abs(noise), 1e-12 * scale)
    # Michael, Schucany, Haas 1976; the smaller root without cancellation.
    t = scale / (2 * size) * jax.random.normal(smaller, size.shape) ** 2
    ratio = 1 + t + jnp.sqrt(t * (t + 2))
    takes_smaller = jax.random.uniform(which, size.shape) * (1 + 1 / ratio) < 1
    inverse_gaussian = scale * size * jnp.where(takes_smaller, 1 / ratio, ratio)
    return inverse_gaussian + scale**2 * jax.random.normal(square, size.shape) ** 2
