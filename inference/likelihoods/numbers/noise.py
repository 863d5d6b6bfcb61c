"""The noise that devices add to a number: its effect on a clipped law.

A law of finitely many masses becomes a mixture. Under Laplace noise cells' probabilities are flows over the
edges of the cells: O(K), for any law inside them (METHODS 2.5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import logsumexp, ndtr
from jax.typing import ArrayLike
from numpyro.distributions import Laplace, Normal

from inference.likelihoods.numbers.base import ClippedLaw


class _Flows(NamedTuple):
    """Per cell: probability that a value there stays when perturbed, or crosses the left or right edge."""

    stay: Array
    left: Array
    right: Array


def laplace_flows(base: ClippedLaw, edges: Array, noise_scale: Array) -> tuple[Array, Array, Array]:
    """Return the probabilities that base + Laplace noise passes edges, and is in cells.

    It passes each of K + 1 edges upwards from a value below it, or downwards from above, both (..., K + 1),
    and is in each cell, (..., K). `edges` cover the base's bounds; noise_scale has the batch's shape.
    """
    scale = jnp.asarray(noise_scale)[..., None]
    inner = jnp.clip(edges, jnp.asarray(base.low)[..., None], jnp.asarray(base.high)[..., None])
    left, right = edges[..., :-1], edges[..., 1:]
    log_low, log_high = base.log_atoms()
    # What decays to the left, what decays to the right, and all, at once: half of the program to trace.
    axes = max(edges.ndim, scale.ndim, log_low.ndim + 1)
    signs = jnp.reshape(jnp.array([-1.0, 1.0, 0.0]), (3,) + (1,) * axes)
    tilted = base.tilted_masses(inner, signs / scale, jnp.where(signs > 0, right, left))
    crossing_left, crossing_right = tilted[0] / 2, tilted[1] / 2
    staying = tilted[2] - crossing_left - crossing_right
    parts = (
        _Flows(staying, crossing_left, crossing_right),
        _atom(base.low, log_low, edges, scale),
        _atom(base.high, log_high, edges, scale),
    )
    flows = _Flows(*(sum(part[1:], part[0]) for part in zip(*parts, strict=True)))
    above = _carry(flows.right, (edges - edges[..., :1]) / scale)
    from_top = (edges[..., -1:] - edges)[..., ::-1] / scale
    below = _carry(flows.left[..., ::-1], from_top)[..., ::-1]
    cells = -jnp.expm1((left - right) / scale) * (above[..., :-1] + below[..., 1:]) + flows.stay
    return above, below, cells


def _atom(at: ArrayLike, log_mass: Array, edges: Array, scale: Array) -> _Flows:
    """Flows of a point mass at `at` out of the cell that contains it."""
    at = jnp.asarray(at)[..., None]
    last = edges.shape[-1] - 2
    index = jnp.clip(jnp.sum(edges <= at, axis=-1, keepdims=True) - 1, 0, last)
    here = jnp.arange(last + 1) == index
    mass = jnp.where(here, jnp.exp(log_mass)[..., None] / 2, 0.0)
    to_left = jnp.where(here, (at - edges[..., :-1]) / scale, 0.0)
    to_right = jnp.where(here, (edges[..., 1:] - at) / scale, 0.0)
    staying = -mass * (jnp.expm1(-to_left) + jnp.expm1(-to_right))
    return _Flows(staying, mass * jnp.exp(-to_left), mass * jnp.exp(-to_right))


def _carry(inflow: Array, position: Array) -> Array:
    """Return at each of K + 1 edges the inflow between earlier edges, decayed by exp(-distance).

    inflow k arrives at edge k + 1; `position` increases from 0 in units of the decay length.
    """
    carried = jnp.cumsum(inflow * jnp.exp(position[..., 1:]), axis=-1)
    start = jnp.zeros_like(carried[..., :1])
    return jnp.concatenate([start, carried], axis=-1) * jnp.exp(-position)


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
    """Return the share of the noise around each point that is in each cell: (..., K + 2, Q)."""
    u = (edges[:, None] - points) / scale
    # In the upper tail, differences of the mass above; elsewhere of the mass below.
    below, above = ndtr(u), ndtr(-u)
    inside = jnp.where(u[..., :-1, :] > 0, above[..., :-1, :] - above[..., 1:, :], jnp.diff(below, axis=-2))
    return jnp.concatenate([below[..., :1, :], inside, above[..., -1:, :]], axis=-2)


class LaplaceNoise(Laplace):
    """Laplace noise around zero.

    Args:
        scale: mean absolute noise, in the unit of the bounds, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    def __init__(self, scale: ArrayLike, *, validate_args: bool | None = None) -> None:
        super().__init__(0.0, scale, validate_args=validate_args)

    def log_density(self, base: ClippedLaw, z: Array) -> Array:
        """Compute the log density of base + noise.

        Args:
            base: law of the answer before noise.
            z: reports, shape (sample…, batch…).

        Returns:
            The log density at each report, shape (sample…, batch…).
        """
        return base.log_with_laplace(z, jnp.asarray(self.scale))

    def cell_probs(self, base: ClippedLaw, edges: ArrayLike) -> Array:
        """Compute the probabilities of base + noise in cells.

        Args:
            base: law of the answer before noise.
            edges: the K + 1 edges of the cells, increasing.

        Returns:
            Probabilities (..., K + 2) that base + noise is below, in each of K cells, or above `edges`.
        """
        above, below, cells = laplace_flows(base, jnp.asarray(edges), self.scale)
        return jnp.concatenate([below[..., :1], cells, above[..., -1:]], axis=-1)


class GaussianNoise(Normal):
    """Gaussian noise around zero.

    Args:
        scale: standard deviation, in the unit of the bounds, shape (...).
        validate_args: whether NumPyro checks arguments and values.
    """

    def __init__(self, scale: ArrayLike, *, validate_args: bool | None = None) -> None:
        super().__init__(0.0, scale, validate_args=validate_args)

    def log_density(self, base: ClippedLaw, z: Array) -> Array:
        """Compute the log density of base + noise.

        Args:
            base: law of the answer before noise.
            z: reports, shape (sample…, batch…).

        Returns:
            The log density at each report, shape (sample…, batch…).
        """
        return base.log_with_gaussian(z, jnp.asarray(self.scale))

    def cell_probs(self, base: ClippedLaw, edges: ArrayLike) -> Array:
        """Compute the probabilities of base + noise in cells.

        Args:
            base: law of the answer before noise.
            edges: the K + 1 edges of the cells, increasing.

        Returns:
            Probabilities (..., K + 2) that base + noise is below, in each of K cells, or above `edges`.
        """
        return base.gaussian_cells(edges, self.scale)


Noise = LaplaceNoise | GaussianNoise
