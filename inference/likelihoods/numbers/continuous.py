"""Any continuous law, clipped to bounds: quadrature of its density."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp
from jax.typing import ArrayLike
from numpyro.distributions import (
    Beta,
    Delta,
    Distribution,
    MixtureGeneral,
    MixtureSameFamily,
)
from numpyro.distributions.util import not_jax_tracer

from inference.likelihoods.numbers.base import ClippedLaw, log_normal
from inference.likelihoods.numbers.noise import laplace_flows, log_mixture, mixture_cells
from inference.likelihoods.numbers.quadrature import Nodes, end_nodes, log_masses, panel_nodes
from inference.likelihoods.numbers.tails import log_tails, support_ends

# The fewest panels over the bounds, and Gauss-Legendre nodes in each: more if the density may be singular at
# an end of its support, which still affects the panels next to the first and last one.
FEWEST_PANELS = 256
PANELS_UNDER_GAUSSIAN = 128
NODES_PER_PANEL = 4
NODES_NEAR_AN_END = 8


class _End(NamedTuple):
    """A panel that begins `at` the end of a support and has a signed length inwards."""

    at: Array
    length: Array
    inwards: int

    @property
    def nodes(self) -> Nodes:
        return end_nodes(self.at, self.length)

    @property
    def other(self) -> Array:
        return self.at + self.length


class ClippedContinuous(ClippedLaw):
    """A continuous law clipped to [low, high], by quadrature of its density.

    Errors of densities and of cell probabilities stay below 1e-8 of the largest under two conditions. The
    base's narrowest feature between the bounds has an sd of at least 1/256 of their distance (1/128 under
    Gaussian noise). Its density has at most one peak beyond each bound, however narrow and far. The mass that
    quadrature finds is taken as all. A density that is singular at an end of its support other than zero
    should be shifted there: floats near that end are too coarse.

    Args:
        base: any univariate NumPyro law whose log_prob is smooth inside its support; it may be singular, or
            end, at the ends of its support.
        low: lower bound, in the unit of the base.
        high: upper bound.
        validate_args: whether NumPyro checks arguments and values.

    Raises:
        ValueError: the law is discrete, a mixture, or not of one number.
    """

    arg_constraints: ClassVar[dict[str, Any]] = {}
    pytree_data_fields = ("base", "low", "high")

    def __init__(
        self,
        base: Distribution,
        low: ArrayLike = 0.0,
        high: ArrayLike = 1.0,
        *,
        validate_args: bool | None = None,
    ) -> None:
        # Quadrature misses a mass at a point, and the second of two peaks beyond a bound.
        wrong = isinstance(base, (Delta, MixtureGeneral, MixtureSameFamily))
        if wrong or base.event_shape or base.is_discrete:
            raise ValueError(f"{type(base).__name__} is not a continuous law of one number with one peak")
        self.base, self.low, self.high = base, _known(low), _known(high)
        super().__init__(base.batch_shape, validate_args=validate_args)

    def log_density(self, x: Array) -> Array:
        return self.base.log_prob(x)

    def draw(self, key: Array, shape: tuple[int, ...]) -> Array:
        return self.base.sample(key, shape[: len(shape) - len(self.batch_shape)])

    def log_atoms(self) -> tuple[Array, Array]:
        return log_tails(self.base, self.low, self.high)

    def tilted_masses(self, edges: Array, tilt: Array | float, origin: Array) -> Array:
        parts = -(-FEWEST_PANELS // (edges.shape[-1] - 1))
        lower, upper = self._end_panels(edges)
        inner = jnp.clip(edges, *self._between(lower, upper))
        nodes = panel_nodes(inner, parts, self._nodes)
        at = origin[..., None]
        tilted = self._masses(nodes) * jnp.exp(jnp.asarray(tilt)[..., None] * (nodes.points - at))
        total = tilted.sum(-1)
        for end in (lower, upper):
            if end is not None:
                total += self._end_masses(end, edges, jnp.asarray(tilt), origin)
        return total

    def log_with_laplace(self, z: Array, scale: Array) -> Array:
        """Compute the log density of the law plus Laplace noise.

        Values and slopes at knots are quadratures; a cubic joins them, and decay is exact outside. Densities
        are relative to the mass that was found: a law does not gain from a rule that finds too much.

        Args:
            z: reports, shape (sample…, batch…).
            scale: of the noise, shape (batch…).

        Returns:
            The log density at each report, shape (sample…, batch…).
        """
        knots = self._knots(scale)
        above, below, cells = laplace_flows(self, knots, scale)
        log_total = jnp.log(below[..., 0] + cells.sum(-1) + above[..., -1])
        density, slope = (above + below) / scale[..., None], (below - above) / scale[..., None] ** 2
        inside = jnp.clip(z, self.low, self.high)
        joined = _hermite(inside, knots, density, slope)
        log_joined = jnp.log(jnp.maximum(joined, np.finfo(joined.dtype).tiny))
        return log_joined - log_total - jnp.abs(z - inside) / scale

    def log_with_gaussian(self, z: Array, scale: Array) -> Array:
        return log_mixture(*self.points(), log_normal, z, scale)

    def gaussian_cells(self, edges: ArrayLike, scale: ArrayLike) -> Array:
        return mixture_cells(*self.points(), edges, scale)

    @property
    def _ends(self) -> tuple[Any, Any]:
        return support_ends(self.base)

    @property
    def _nodes(self) -> int:
        return NODES_PER_PANEL if self._ends == (None, None) else NODES_NEAR_AN_END

    @property
    def _span(self) -> Array:
        return self.high - self.low

    def _log_probs(self, x: Array) -> Array:
        """Log density at points (p…), shape (batch…, p…)."""
        batch = len(self.batch_shape)
        found = self.base.log_prob(x.reshape(*x.shape, *[1] * batch))
        return jnp.moveaxis(found, range(x.ndim), range(-x.ndim, 0))

    def _log_masses(self, nodes: Nodes) -> Array:
        return log_masses(self._log_probs(nodes.points), nodes.weights)

    def _masses(self, nodes: Nodes) -> Array:
        return jnp.exp(self._log_masses(nodes))

    def _panels(self, count: int) -> Array:
        return self.low + self._span * np.linspace(0, 1, count + 1)

    def _knots(self, scale: Array) -> Array:
        """Return edges so close that a cubic is exact to about 1e-9, closer still near a support's ends."""
        knots = [self._panels(_panels_for(self._span, scale))]
        near = self._span * np.exp(np.arange(np.log(1e-9), np.log(0.03), 0.08))
        knots += [end + sign * near for end, sign in zip(self._ends, (1, -1), strict=True) if end is not None]
        return jnp.sort(jnp.clip(jnp.concatenate(knots), self.low, self.high))

    def _end_panels(self, edges: Array) -> tuple[_End | None, _End | None]:
        """Return the first and the last panel inside the bounds, at which the support ends."""
        first, last = self._ends
        start = self.low if first is None else jnp.clip(first, self.low, self.high)
        stop = self.high if last is None else jnp.clip(last, self.low, self.high)
        longest = jnp.minimum(self._span / 64, (stop - start) / 2)
        up = jnp.min(jnp.where(edges > start, edges - start, longest))
        down = jnp.min(jnp.where(edges < stop, stop - edges, longest))
        lower = None if first is None else _End(start, jnp.minimum(up, longest), 1)
        upper = None if last is None else _End(stop, -jnp.minimum(down, longest), -1)
        return lower, upper

    def _between(self, lower: _End | None, upper: _End | None) -> tuple[Array, Array]:
        return self.low if lower is None else lower.other, self.high if upper is None else upper.other

    def _end_masses(self, end: _End, edges: Array, tilt: Array, origin: Array) -> Array:
        """Return the tilted mass of an end panel, in the cell that contains it: (..., K)."""
        nodes, cells = end.nodes, edges.shape[-1] - 1
        index = jnp.clip(jnp.sum(edges <= end.at + end.length / 2) - 1, 0, cells - 1)
        tilted = jnp.exp(self._log_end_masses(end) + tilt * (nodes.points - origin[..., index][..., None]))
        return jnp.where(jnp.arange(cells) == index, tilted.sum(-1, keepdims=True), 0.0)

    def _log_end_masses(self, end: _End) -> Array:
        """Log masses of an end panel's nodes; of Beta at 1 from the mirrored law, whose end is at zero."""
        if type(self.base) is not Beta or end.inwards > 0:
            return self._log_masses(end.nodes)
        mirrored = ClippedContinuous(Beta(self.base.concentration0, self.base.concentration1))
        return mirrored._log_masses(end_nodes(1 - end.at, -end.length))

    def points(self) -> tuple[Array, Array]:
        """Return points (Q,) and log masses (..., Q) that represent the law under a smooth function."""
        with jax.ensure_compile_time_eval():
            edges = jnp.asarray(self._panels(PANELS_UNDER_GAUSSIAN))
            ends = self._end_panels(edges)
            panels = panel_nodes(jnp.clip(edges, *self._between(*ends)), 1, self._nodes)
            panels = Nodes(panels.points.ravel(), panels.weights.ravel())
            some = [end for end in ends if end is not None]
            low, high = (jnp.reshape(bound, 1) for bound in (self.low, self.high))
            points = jnp.concatenate([low, panels.points, *(end.nodes.points for end in some), high])
        log_low, log_high = self.log_atoms()
        inside = [self._log_masses(panels), *map(self._log_end_masses, some)]
        log_found = jnp.concatenate([log_low[..., None], *inside, log_high[..., None]], axis=-1)
        return points, log_found - logsumexp(log_found, axis=-1, keepdims=True)


def _known(bound: ArrayLike) -> Any:
    """Keep a bound that is known before tracing: results that depend on it alone are computed once."""
    return np.asarray(bound, float) if not_jax_tracer(bound) else bound


def _panels_for(span: Array, scale: Array) -> int:
    """Return how many panels a cubic needs: fixed, unless the noise is known to be narrow."""
    if not (not_jax_tracer(span) and not_jax_tracer(scale)):
        return 4 * FEWEST_PANELS
    return int(np.clip(128 * np.max(span / scale), 4 * FEWEST_PANELS, 32 * FEWEST_PANELS))


def _hermite(x: Array, knots: Array, values: Array, slopes: Array) -> Array:
    """Evaluate the cubic through values and slopes (..., K + 1) at knots (K + 1,), at x (sample…, ...)."""
    k = jnp.clip(jnp.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    width = knots[k + 1] - knots[k]
    width = jnp.where(width > 0, width, 1.0)
    t = (x - knots[k]) / width
    v0, v1, s0, s1 = (_taken(table, k + step) for table in (values, slopes) for step in (0, 1))
    bend = t * (1 - t) * width * ((1 - t) * s0 - t * s1)
    return v0 + (v1 - v0) * t**2 * (3 - 2 * t) + bend


def _taken(table: Array, index: Array) -> Array:
    """Take entries of a table (..., K) by an index (sample…, ...)."""
    if table.ndim == 1:
        return table[index]
    shape = jnp.broadcast_shapes(index.shape, table.shape[:-1])
    table = jnp.broadcast_to(table, (*shape[len(shape) - table.ndim + 1 :], table.shape[-1]))
    rows = table.reshape(-1, table.shape[-1])
    columns = jnp.broadcast_to(index, shape).reshape(-1, len(rows))
    return rows[jnp.arange(len(rows)), columns].reshape(shape)
