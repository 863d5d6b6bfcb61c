"""Cell probabilities of a report's law from its density, where noise makes that smooth."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpyro.distributions.util import not_jax_tracer

from inference.likelihoods.numbers.quadrature import panel_nodes

# Panels of 1/30 of the noise's sd with two nodes each, or of 1/8 with three.
SHORT, FEW = 30, 2
PANELS_PER_SD, NODES = 8, 3
UNKNOWN_PARTS = 4
TAIL_SDS = 12


def density_cells(
    log_density: Callable[[Array, Array], Array], edges: ArrayLike, scale: ArrayLike, batch: int
) -> Array:
    """Probabilities (..., K + 2) below, in each cell of, and above `edges` (K + 1,).

    log_density(z (m, 1, …), scale): of a law with `batch` batch dimensions, smooth on the scale of the
    noise's sd. Gauss-Legendre in panels short beside it leaves a relative error near 1e-10; beyond the
    outer edges the law is followed over twelve sd.
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
    """Into how many parts a cell is cut, and the nodes in each, so that they are short beside the noise."""
    if not (not_jax_tracer(edges) and not_jax_tracer(scale)):
        return UNKNOWN_PARTS, NODES
    widest = float(np.max(np.diff(np.asarray(edges))) / np.min(np.asarray(scale)))
    return (1, FEW) if widest * SHORT <= 1 else (max(1, math.ceil(widest * PANELS_PER_SD)), NODES)
