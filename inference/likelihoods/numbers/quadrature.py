"""Rules for integrals of a density: over panels, and up to an end of its support."""

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.number]
_STEP = 0.11
# Distances down to about 1e-300 of the panel's length: room for a density like x^(0.05 - 1) at zero.
_NEAR, _FAR = 6.05, 2.6


def gauss_legendre(edges: Values, count: int) -> tuple[Values, Values]:
    """Return `count` nodes in each panel between edges (K + 1,), and their weights: (K * count,)."""
    x, w = np.polynomial.legendre.leggauss(count)
    left, width = edges[:-1, None], np.diff(edges)[:, None]
    return (left + width * (x + 1) / 2).ravel(), (width * w / 2).ravel()


def tanh_sinh(end: float, other: float) -> tuple[Values, Values]:
    """Return nodes from `end`, a possible singularity, which they approach geometrically, and weights."""
    t = np.arange(-_NEAR, _FAR, _STEP)
    exponent = np.pi * np.sinh(t)
    x = 1 / (1 + np.exp(-exponent))
    w = _STEP * np.pi * np.cosh(t) * x / (1 + np.exp(exponent))
    # Nodes that floats can tell from the end.
    points = (end + (other - end) * x).astype(jnp.result_type(float))
    kept = (points != end) & (x > 1e6 * np.finfo(points.dtype).tiny)
    return points[kept], abs(other - end) * w[kept]
