"""Rules for integrals of a density over panels, up to the ends of its support, and over its tails."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

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
    """Gauss-Legendre with `count` nodes in each of `parts` parts of each panel: (..., K, parts * count)."""
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
    """Tanh-sinh from `end`, where the integrand may be singular, over a signed length: (m,)."""
    x, w = _representable(*_END, length.dtype)
    points = end + length * x
    rounded = points == end
    points = jnp.where(rounded, jnp.nextafter(end, end + length), points)
    return Nodes(points, jnp.where(rounded, 0.0, jnp.abs(length) * w))


def tail_nodes(end: Array, unit: Array) -> Nodes:
    """Exp-sinh from `end` to infinity in the direction of `unit`, a signed length: (m,)."""
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
