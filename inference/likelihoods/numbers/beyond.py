"""The mass that a density has beyond a bound, by quadrature that looks for where it lies."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike

from inference.likelihoods.numbers.quadrature import Nodes, end_nodes, log_masses, panel_nodes, tail_nodes

# Where the search for the peak looks first, in distances between the bounds, and how often it looks closer.
FIRST_LOOK = np.concatenate([[0.0], np.exp2(np.arange(-8.0, 60.0))])
PLACES, LOOKS = 65, 3
# Panels grow fourfold away from the peak, from the search's own accuracy to its distance, and further out.
GROWTH = 4.0 ** np.arange(-9.0, 7.0)
INWARDS = 10
NODES = 16
# Densities of exp(-10⁴) and less are nothing, and laws that fall so fast may overflow there.
NOTHING = -1e4

LogDensity = Callable[[Array], Array]


class Beyond:
    """The region from a bound outwards (1 or -1), to infinity or to the `end` of the law's support.

    log_density: (points (batch…, p)) -> log densities of the same shape. span: a distance to measure in.
    room: how far inside the support reaches from its end, where that lies inside the bounds.
    """

    def __init__(
        self,
        log_density: LogDensity,
        batch: tuple[int, ...],
        bound: ArrayLike,
        outwards: int,
        span: ArrayLike,
        end: ArrayLike | None = None,
        room: ArrayLike | None = None,
    ) -> None:
        self.log_density, self.outwards, self.span = log_density, outwards, jnp.asarray(span, float)
        self.bound = jnp.broadcast_to(jnp.asarray(bound, float), batch)
        self.end: Array | None = None
        if end is not None:
            self.end = jnp.broadcast_to(jnp.asarray(end, float), batch)
            length = outwards * (self.end - self.bound)
            # Beyond the support's end there is nothing: what stands for it lies inside, and weighs nothing.
            self.some = length > 0
            self.room = jnp.where(self.some, length, self.span if room is None else room)
            self.bound = self.end - outwards * self.room

    def log_mass(self) -> Array:
        """Log probability of the region, (batch…): to 1e-9 where the density has one peak in it."""
        nodes = self._nodes(jax.lax.stop_gradient(self._peak()))
        density = jax.lax.stop_gradient(self.log_density(nodes.points))
        density = jnp.where(jnp.isnan(density), -jnp.inf, density)
        best = jnp.argmax(density, -1, keepdims=True)
        live = density > NOTHING
        points = jnp.where(live, nodes.points, jnp.take_along_axis(nodes.points, best, -1))
        return logsumexp(log_masses(self.log_density(points), jnp.where(live, nodes.weights, 0.0)), -1)

    def _at(self, distance: Array) -> Array:
        return self.bound[..., None] + self.outwards * distance

    def _peak(self) -> Array:
        """Distance (batch…) from the bound to where the density is highest."""
        first = jnp.broadcast_to(self.span * FIRST_LOOK, (*self.bound.shape, len(FIRST_LOOK)))
        found = self._highest(first if self.end is None else jnp.minimum(first, self.room[..., None]))

        def closer(_: int, found: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            left, _peak, right = found
            return self._highest(left[..., None] + (right - left)[..., None] * np.linspace(0, 1, PLACES))

        return jax.lax.fori_loop(0, LOOKS, closer, found)[1]

    def _highest(self, distances: Array) -> tuple[Array, Array, Array]:
        """Of increasing distances that of the highest density, and its two neighbours."""
        density = self.log_density(self._at(distances))
        best = jnp.argmax(jnp.where(jnp.isnan(density), -jnp.inf, density), -1)[..., None]
        last = distances.shape[-1] - 1
        taken = (jnp.clip(best + step, 0, last) for step in (-1, 0, 1))
        left, peak, right = (jnp.take_along_axis(distances, index, -1)[..., 0] for index in taken)
        return left, peak, right

    def _nodes(self, peak: Array) -> Nodes:
        """Nodes (batch…, m): panels that grow away from the peak, and a rule for what lies further out."""
        steps = (peak + self.span)[..., None] * GROWTH
        peak = peak[..., None]
        edges = jnp.concatenate([peak - steps[..., INWARDS - 1 :: -1], peak, peak + steps], -1)
        edges = jnp.maximum(edges, 0.0)
        if self.end is not None:
            edges = jnp.minimum(edges, self.room[..., None] * (1 - GROWTH[0]))
        near, last = panel_nodes(edges, 1, NODES), edges[..., -1:]
        if self.end is None:
            far = tail_nodes(self._at(last), self.outwards * steps[..., -1:])
        else:
            far = end_nodes(self.end[..., None], -self.outwards * (self.room[..., None] - last))
        points, weights = (part.reshape(*part.shape[:-2], -1) for part in near)
        weights = jnp.concatenate([weights, far.weights], -1)
        if self.end is not None:
            weights = jnp.where(self.some[..., None], weights, 0.0)
        return Nodes(jnp.concatenate([self._at(points), far.points], -1), weights)
