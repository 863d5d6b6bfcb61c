"""Cell probabilities of a report's law from its density, where noise makes that smooth."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.distributions.util import not_jax_tracer

from .quadrature import panel_nodes

NODES = 3
PANELS_PER_SD = 8
UNKNOWN_PARTS = 4
TAIL_SDS = 12


def density_cells(
    log_density: Callable[[Array, Array], Array], edges: Array, scale: Array, batch: int
) -> Array:
    """Probabilities (..., K + 2) below, in each cell of, and above `edges` (K + 1,).

    log_density(z (m, 1, …), scale): of a law with `batch` batch dimensions, smooth on the scale of the noise's sd. Panels of at most an eighth
    of it with three Gauss-Legendre nodes leave a relative error near 1e-10; beyond the outer edges the law
    is followed over twelve sd.
    """
    sd = jnp.max(scale)
    spread = lambda z: log_density(z.reshape(-1, *[1] * batch), scale)  # noqa: E731
    reach = sd * np.arange(1, TAIL_SDS + 1)
    tail_parts = PANELS_PER_SD // 2
    cells = _integrals(spread, edges, _parts(edges, scale))
    below = _integrals(spread, jnp.concatenate([(edges[0] - reach)[::-1], edges[:1]]), tail_parts)
    above = _integrals(spread, jnp.concatenate([edges[-1:], edges[-1] + reach]), tail_parts)
    return jnp.concatenate([below.sum(-1, keepdims=True), cells, above.sum(-1, keepdims=True)], axis=-1)


def _integrals(log_density: Callable[[Array], Array], edges: Array, parts: int) -> Array:
    nodes = panel_nodes(edges, parts, NODES)
    found = jnp.moveaxis(jnp.exp(log_density(nodes.points)), 0, -1)
    return (found.reshape(*found.shape[:-1], *nodes.points.shape) * nodes.weights).sum(-1)


def _parts(edges: Array, scale: Array) -> int:
    """How many parts of a cell make panels that are short beside the noise."""
    if not (not_jax_tracer(edges) and not_jax_tracer(scale)):
        return UNKNOWN_PARTS
    widest = float(np.max(np.diff(np.asarray(edges))))
    return max(1, int(np.ceil(widest / np.min(np.asarray(scale)) * PANELS_PER_SD)))
