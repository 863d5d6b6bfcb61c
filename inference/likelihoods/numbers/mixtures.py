"""Finitely many masses plus noise: densities of reports, and probabilities of cells."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import logsumexp, ndtr
from jax.typing import ArrayLike

# Reports × points that are held in memory at once.
_AT_ONCE = 1 << 22


def log_mixture(
    points: ArrayLike, log_masses: Array, log_kernel: Callable[..., Array], z: Array, scale: Array
) -> Array:
    """Log of sum_q exp(log_masses_q + log_kernel(z, points_q, scale)): the shape of z.

    points (Q,); log_masses (..., Q) and scale (...) broadcast against z. O(reports × Q), in bounded memory
    where all reports share one law.
    """
    x = jnp.asarray(points)

    def one(z: Array, scale: Array) -> Array:
        return logsumexp(log_masses + log_kernel(z[..., None], x, scale[..., None]), axis=-1)

    if z.size * len(x) <= _AT_ONCE or log_masses.ndim > 1 or scale.ndim:
        return one(z, scale)
    rows = jax.lax.map(jax.checkpoint(lambda z: one(z, scale)), z.ravel(), batch_size=_AT_ONCE // len(x))
    return rows.reshape(z.shape)


def mixture_cells(points: ArrayLike, log_masses: Array, edges: ArrayLike, scale: ArrayLike) -> Array:
    """Probabilities (..., K + 2) of masses plus Normal(0, scale) below, in each cell of, and above `edges`.

    points (Q,), log_masses (..., Q), edges (K + 1,), scale (...). What does not depend on the masses is
    computed once, when edges and scale are known before tracing.
    """
    with jax.ensure_compile_time_eval():
        shares = _cell_shares(jnp.asarray(points), jnp.asarray(edges), jnp.asarray(scale)[..., None, None])
    return jnp.einsum("...kq,...q->...k", shares, jnp.exp(log_masses))


def _cell_shares(points: Array, edges: Array, scale: Array) -> Array:
    """Share of the noise around each point that lies in each cell: (..., K + 2, Q)."""
    u = (edges[:, None] - points) / scale
    # In the upper tail, differences of the mass above; elsewhere of the mass below.
    below, above = ndtr(u), ndtr(-u)
    inside = jnp.where(u[..., :-1, :] > 0, above[..., :-1, :] - above[..., 1:, :], jnp.diff(below, axis=-2))
    return jnp.concatenate([below[..., :1, :], inside, above[..., -1:, :]], axis=-2)
