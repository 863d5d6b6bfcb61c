"""Rules for integrals of a density over panels, up to the ends of its support, and over its tails.

The cell probabilities of a report's law are such integrals; noise makes its density smooth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions.util import not_jax_tracer

_STEP = 0.11
# Distances down to about 1e-300 of the panel's length: room for a density like x^(0.05 - 1) at zero.
_NEAR, _FAR = 6.05, 2.6
_TAIL_REACH = 4.0


class Nodes(NamedTuple):
    """Points x (..., m), and weights w of the same shape: the integral of f is sum of w * f(x)."""

    points: Array
    weights: Array


def gauss_legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [0, 1], shape (count,)."""
    x, w = np.polynomial.legendre.leggauss(count)
    return (x + 1) / 2, w / 2


def panel_nodes(edges: Array, parts: int, count: int) -> Nodes:
    """Return Gauss-Legendre nodes, `count` in each of `parts` parts of a panel: (..., K, parts * count)."""
    x, w = gauss_legendre(count)
    within = ((np.arange(parts)[:, None] + x) / parts).ravel()
    left, width = edges[..., :-1, None], jnp.diff(edges)[..., None]
    return Nodes(left + width * within, width * np.tile(w, parts) / parts)


def _end_rule() -> tuple[np.ndarray, np.ndarray]:
    """Tanh-sinh on (0, 1): distances from the end at 0, which they approach geometrically, and weights."""
    t = np.arange(-_NEAR, _FAR, _STEP)
    exponent = np.pi * np.sinh(t)
    x = 1 / (1 + np.exp(-exponent))
    return x, _STEP * np.pi * np.cosh(t) * x / (1 + np.exp(exponent))


def _tail_rule() -> tuple[np.ndarray, np.ndarray]:
    """Exp-sinh on (0, infinity)."""
    t = np.arange(-_TAIL_REACH, _TAIL_REACH, _STEP)
    x = np.exp(np.pi / 2 * np.sinh(t))
    return x, _STEP * np.pi / 2 * np.cosh(t) * x


_END, _TAIL = _end_rule(), _tail_rule()


def end_nodes(end: Array, length: Array) -> Nodes:
    """Return tanh-sinh nodes from `end`, a possible singularity, over a signed length: (m,)."""
    x, w = _representable(*_END, length.dtype)
    points = end + length * x
    rounded = points == end
    points = jnp.where(rounded, jnp.nextafter(end, end + length), points)
    return Nodes(points, jnp.where(rounded, 0.0, jnp.abs(length) * w))


def tail_nodes(end: Array, unit: Array) -> Nodes:
    """Return exp-sinh nodes from `end` to infinity in the direction of `unit`, a signed length: (m,)."""
    x, w = _TAIL
    return Nodes(end + unit * x, jnp.abs(unit) * w)


def _representable(x: np.ndarray, w: np.ndarray, dtype: jnp.dtype) -> tuple[np.ndarray, np.ndarray]:
    keep = x > 1e6 * np.finfo(dtype).tiny
    return x[keep], w[keep]


def log_masses(log_density: Array, weights: Array) -> Array:
    """log(density * weight), -inf where the weight is zero or the density is singular at a rounded node."""
    good = (weights > 0) & jnp.isfinite(log_density)
    return jnp.where(
        good, jnp.where(good, log_density, 0.0) + jnp.log(jnp.where(good, weights, 1.0)), -jnp.inf
    )


# Panels of 1/30 of the noise's sd with two nodes each, or of 1/8 with three.
SHORT, FEW = 30, 2
PANELS_PER_SD, NODES = 8, 3
UNKNOWN_PARTS = 4
TAIL_SDS = 12


def density_cells(
    log_density: Callable[[Array, Array], Array], edges: ArrayLike, scale: ArrayLike, batch: int
) -> Array:
    """Return probabilities (..., K + 2) below, in each cell of, and above `edges` (K + 1,).

    log_density(z (m, 1, …), scale): of a law with `batch` batch dimensions, smooth on the scale of the
    noise's sd. Gauss-Legendre in panels much shorter than the sd leaves a relative error near 1e-10; beyond
    the outer edges the law is followed over twelve sd.
    """
    parts, count = _rule(edges, scale)
    edges, scale = jnp.asarray(edges), jnp.asarray(scale)
    reach = jnp.max(scale) * np.arange(1, TAIL_SDS + 1)
    spread = lambda z: log_density(z.reshape(-1, *[1] * batch), scale)  # noqa: E731
    cells = _integrals(spread, edges, parts, count)
    down = jnp.concatenate([(edges[0] - reach)[::-1], edges[:1]])
    up = jnp.concatenate([edges[-1:], edges[-1] + reach])
    below, above = (_integrals(spread, tail, 1, 2 * NODES).sum(-1, keepdims=True) for tail in (down, up))
    return jnp.concatenate([below, cells, above], axis=-1)


def _integrals(log_density: Callable[[Array], Array], edges: Array, parts: int, count: int) -> Array:
    nodes = panel_nodes(edges, parts, count)
    found = jnp.moveaxis(jnp.exp(log_density(nodes.points)), 0, -1)
    return (found.reshape(*found.shape[:-1], *nodes.points.shape) * nodes.weights).sum(-1)


def _rule(edges: ArrayLike, scale: ArrayLike) -> tuple[int, int]:
    """Return the parts per cell, and the nodes in each, so that parts are short relative to the noise."""
    if not (not_jax_tracer(edges) and not_jax_tracer(scale)):
        return UNKNOWN_PARTS, NODES
    widest = float(np.max(np.diff(np.asarray(edges))) / np.min(np.asarray(scale)))
    return (1, FEW) if widest * SHORT <= 1 else (max(1, math.ceil(widest * PANELS_PER_SD)), NODES)
