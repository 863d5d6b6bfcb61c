"""Mean and covariance of a record's uuᵀ, u = (w, y), y = θᵀw + N(0, σ²): what the CLT needs (DPBLR II-B4)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from inference.published.conjugate import Values


def normal_moments(mean: Values, covariance: Values, columns: int) -> tuple[Array, Array]:
    """E[wwᵀ] (q, q) and Cov(w_i w_j, w_k w_l) (q, q, q, q) of x ~ N(mean, covariance).

    w = (1, x), or x where columns = d. Isserlis; METHODS 4.2.
    """
    constants = columns - len(mean)
    middle = jnp.concatenate([jnp.ones(constants), mean])
    second = jnp.outer(middle, middle).at[constants:, constants:].add(covariance)
    four = jnp.einsum("i,j,k,l", middle, middle, middle, middle)
    pairs = jnp.einsum("ik,jl->ijkl", second, second)
    return second, pairs + pairs.swapaxes(2, 3) - 2 * four


def record_moments(second: Array, covariance: Array, theta: Array, variance: Array) -> tuple[Array, Array]:
    """E[uuᵀ] (p, p) and Cov(u_i u_j, u_k u_l) (p, p, p, p) from those of w; only two moments of w matter."""
    q = len(theta)
    mean = jnp.zeros((q + 1, q + 1)).at[:q, :q].set(second).at[q, q].set(variance)
    # First (w, ε), ε ~ N(0, σ²), then y = θᵀw + ε.
    four = jnp.zeros((q + 1,) * 4).at[:q, :q, :q, :q].set(covariance)
    once = variance * second
    four = four.at[:q, q, :q, q].add(once).at[:q, q, q, :q].add(once)
    four = four.at[q, :q, :q, q].add(once).at[q, :q, q, :q].add(once)
    four = four.at[q, q, q, q].add(2 * variance**2)
    change = jnp.eye(q + 1).at[q, :q].set(theta)
    return change @ mean @ change.T, jnp.einsum(
        "ijkl,ai,bj,ck,dl->abcd", four, change, change, change, change, optimize="greedy"
    )
