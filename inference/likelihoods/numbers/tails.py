"""Probabilities of a law beyond two bounds: in closed form, else by quadrature.

The quadrature searches for the mass beyond a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import log_ndtr, logsumexp
from jax.typing import ArrayLike
from numpyro.distributions import Beta, Distribution, LogNormal, Normal, Weibull
from numpyro.distributions.util import not_jax_tracer

from inference.likelihoods.numbers.quadrature import Nodes, end_nodes, log_masses, panel_nodes, tail_nodes

# The first distances at which the peak is searched, in distances between the bounds, and the number of
# refinements.
FIRST_LOOK = np.concatenate([[0.0], np.exp2(np.arange(-8.0, 60.0))])
PLACES, LOOKS = 65, 3
# Panels grow fourfold away from the peak, from the search's own accuracy to its distance, and further out.
GROWTH = 4.0 ** np.arange(-9.0, 7.0)
INWARDS = 10
NODES = 16
# Densities of exp(-10⁴) and less count as zero, and laws that fall so fast may overflow there.
NOTHING = -1e4

LogDensity = Callable[[Array], Array]


class Beyond:
    """The region from a bound outwards (1 or -1), to infinity or to the `end` of the law's support.

    log_density: (points (batch…, p)) -> log densities of the same shape. span: a distance to measure in.
    room: how far the support reaches inwards from its end, if that is inside the bounds.
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
            # Beyond the support's end the law is zero: placeholder points are inside the support, with no
            # weight.
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
        """Return the distance (batch…) from the bound to the density's maximum."""
        first = jnp.broadcast_to(self.span * FIRST_LOOK, (*self.bound.shape, len(FIRST_LOOK)))
        found = self._highest(first if self.end is None else jnp.minimum(first, self.room[..., None]))

        def closer(_: int, found: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            left, _peak, right = found
            return self._highest(left[..., None] + (right - left)[..., None] * np.linspace(0, 1, PLACES))

        return jax.lax.fori_loop(0, LOOKS, closer, found)[1]

    def _highest(self, distances: Array) -> tuple[Array, Array, Array]:
        """Return the increasing distance of the highest density, and its two neighbours."""
        density = self.log_density(self._at(distances))
        best = jnp.argmax(jnp.where(jnp.isnan(density), -jnp.inf, density), -1)[..., None]
        last = distances.shape[-1] - 1
        taken = (jnp.clip(best + step, 0, last) for step in (-1, 0, 1))
        left, peak, right = (jnp.take_along_axis(distances, index, -1)[..., 0] for index in taken)
        return left, peak, right

    def _nodes(self, peak: Array) -> Nodes:
        """Return nodes (batch…, m): panels that grow away from the peak, and a rule for the outer region."""
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


Tails = tuple[Array, Array]


def log_tails(base: Distribution, low: ArrayLike, high: ArrayLike) -> Tails:
    """Return log P(X <= low) and log P(X >= high) of a continuous law of one number, each (batch…).

    low, high: scalars. Laws without a closed form here are integrated, to 1e-9 if the density has one peak
    beyond each bound, however narrow and far.
    """
    known = _KNOWN.get(type(base))
    if known is not None:
        return known(base, jnp.asarray(low, float))[0], known(base, jnp.asarray(high, float))[1]
    return _below(base, low, high), _above(base, low, high)


def support_ends(base: Distribution) -> tuple[Any, Any]:
    """Return the finite ends of a law's support, None for an end that it does not have."""
    support = base.support
    return getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)


def log_densities(base: Distribution, points: Array) -> Array:
    """Log densities at points (batch…, p), the same shape."""
    return jnp.moveaxis(jnp.asarray(base.log_prob(jnp.moveaxis(points, -1, 0))), 0, -1)


def _below(base: Distribution, low: ArrayLike, high: ArrayLike) -> Array:
    first = support_ends(base)[0]
    if first is not None and _surely(first, low):
        return jnp.full(base.batch_shape, -jnp.inf)
    return _integrated(base, low, -1, jnp.asarray(high) - low, first)


def _above(base: Distribution, low: ArrayLike, high: ArrayLike) -> Array:
    last = support_ends(base)[1]
    if last is not None and _surely(high, last):
        return jnp.full(base.batch_shape, -jnp.inf)
    if type(base) is Beta:
        # Floats are dense at zero alone: the end at one is mirrored there.
        return _below(Beta(base.concentration0, base.concentration1), 1 - jnp.asarray(high), 1.0)
    return _integrated(base, high, 1, jnp.asarray(high) - low, last)


def _surely(larger: ArrayLike, smaller: ArrayLike) -> bool:
    """Return True if it is known before tracing that one end is at least another."""
    return not_jax_tracer(larger) and not_jax_tracer(smaller) and bool(np.all(larger >= np.asarray(smaller)))


def _integrated(base: Distribution, bound: ArrayLike, outwards: int, span: Array, end: Any) -> Array:
    first, last = support_ends(base)
    room = span if first is None or last is None else jnp.minimum(span, last - first)
    density = lambda points: log_densities(base, points)  # noqa: E731
    return Beyond(density, base.batch_shape, bound, outwards, span, end, room).log_mass()


def _normal(base: Normal, x: Array) -> Tails:
    return _gaussian((x - base.loc) / base.scale)


def _gaussian(u: Array) -> Tails:
    return log_ndtr(u), log_ndtr(-u)


def _log_normal(base: LogNormal, x: Array) -> Tails:
    some = x > 0
    below, above = _gaussian((jnp.log(jnp.where(some, x, 1.0)) - base.loc) / base.scale)
    return jnp.where(some, below, -jnp.inf), jnp.where(some, above, 0.0)


def _weibull(base: Weibull, x: Array) -> Tails:
    some = x > 0
    until = (jnp.where(some, x, 1.0) / base.scale) ** base.concentration
    return jnp.where(some, _log_of_rest(-until), -jnp.inf), jnp.where(some, -until, 0.0)


def _log_of_rest(log_share: Array) -> Array:
    """Compute log(1 - exp(log_share)), -inf with a derivative of zero if that is zero."""
    rest = -jnp.expm1(log_share)
    some = rest > 0
    return jnp.where(some, jnp.log(jnp.where(some, rest, 1.0)), -jnp.inf)


# {law: (law, x) -> log P(X <= x), log P(X >= x)}
_KNOWN: dict[type, Callable[..., Tails]] = {
    Normal: _normal,
    LogNormal: _log_normal,
    Weibull: _weibull,
}
