"""Laplace noise as flows over the edges of cells: O(K), whatever the law inside them (METHODS 2.5)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike


class Law(Protocol):
    """What of a clipped law is needed."""

    low: Array
    high: Array

    def log_atoms(self) -> tuple[Array, Array]:
        """Log masses of the two atoms."""

    def tilted_masses(self, edges: Array, tilt: Array | float, origin: Array) -> Array:
        """Exponentially tilted masses between the edges, atoms excluded."""


class _Flows(NamedTuple):
    """Per cell: probability that a value there stays when perturbed, or crosses the left or right edge."""

    stay: Array
    left: Array
    right: Array


def laplace_flows(base: Law, edges: Array, noise_scale: Array) -> tuple[Array, Array, Array]:
    """Probabilities that base + Laplace noise passes each of K + 1 edges upwards from a value below it, or
    downwards from above, both (..., K + 1), and that it lies in each cell, (..., K).

    `edges` cover the base's bounds; noise_scale has the batch's shape.
    """
    scale = jnp.asarray(noise_scale)[..., None]
    inner = jnp.clip(edges, jnp.asarray(base.low)[..., None], jnp.asarray(base.high)[..., None])
    left, right = edges[..., :-1], edges[..., 1:]
    crossing_left = base.tilted_masses(inner, -1 / scale, left) / 2
    crossing_right = base.tilted_masses(inner, 1 / scale, right) / 2
    staying = base.tilted_masses(inner, 0.0, left) - crossing_left - crossing_right
    log_low, log_high = base.log_atoms()
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
    """At each of K + 1 edges, what flowed in between earlier ones, decayed by exp(-distance).

    inflow k arrives at edge k + 1; `position` increases from 0 in units of the decay length.
    """
    carried = jnp.cumsum(inflow * jnp.exp(position[..., 1:]), axis=-1)
    start = jnp.zeros_like(carried[..., :1])
    return jnp.concatenate([start, carried], axis=-1) * jnp.exp(-position)
