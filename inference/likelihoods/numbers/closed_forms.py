"""The laws whose cells under Laplace noise have a closed form: however narrow, they are exact."""

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import log_ndtr
from jax.typing import ArrayLike
from scipy.special import erfcx

from inference.likelihoods.numbers.clipped import ClippedContinuous, gauss_legendre
from inference.likelihoods.numbers.noise import mixture_cells

# Nodes over the range of a law, which is so many sds of a normal on each side, or means of an exponential.
MOVING_NODES, NORMAL_REACH, EXPONENTIAL_REACH = 96, 8.0, 36.0


_SQRT_2PI = float(np.sqrt(2 * np.pi))
_MILLS_DEGREE = 20
_MILLS_CENTRE = 4.0
_NARROW = 0.5
_NARROW_TERMS = 5


def _mills_coefficients() -> np.ndarray:
    """Chebyshev coefficients in (v - c) / (v + c) of (1 + v) times the Mills ratio."""

    def scaled_mills(t: np.ndarray) -> np.ndarray:
        v = _MILLS_CENTRE * (1 + t) / (1 - t)
        return np.asarray((1 + v) * np.sqrt(np.pi / 2) * erfcx(v / np.sqrt(2)))

    return np.polynomial.chebyshev.chebinterpolate(scaled_mills, _MILLS_DEGREE)


_MILLS = tuple(float(c) for c in _mills_coefficients())


_MILLS_SLOPE = tuple(float(c) for c in np.polynomial.chebyshev.chebder(_MILLS))


def _chebyshev(coefficients: tuple[float, ...], t: Array) -> Array:
    ahead, beyond = jnp.zeros_like(t), jnp.zeros_like(t)
    for coefficient in reversed(coefficients[1:]):
        ahead, beyond = coefficient + 2 * t * ahead - beyond, ahead
    return coefficients[0] + t * ahead - beyond


@jax.custom_jvp
def mills_ratio(v: Array) -> Array:
    """(1 - Phi(v)) / phi(v) for v >= 0, to about 1e-14 relative.

    One polynomial serves the half line (Shepherd and Laframboise 1981, doi 10.2307/2007735). Its own
    derivative is used: the recurrence R' = v R - 1 would lose v squared digits.
    """
    return _chebyshev(_MILLS, (v - _MILLS_CENTRE) / (v + _MILLS_CENTRE)) / (1 + v)


@mills_ratio.defjvp
def _mills_ratio_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (v,), (dv,) = primals, tangents
    ratio = mills_ratio(v)
    t = (v - _MILLS_CENTRE) / (v + _MILLS_CENTRE)
    inner = _chebyshev(_MILLS_SLOPE, t) * 2 * _MILLS_CENTRE / (v + _MILLS_CENTRE) ** 2
    return ratio, (inner - ratio) / (1 + v) * dv


def _narrow_factor(width: Array, slope: Array) -> Array:
    """Mean of exp(-v d - d^2 / 2) over |d| <= width / 2, with slope = v * width (both <= 1/2 in size)."""
    previous, current = jnp.ones_like(slope), slope
    total, scale = jnp.ones_like(slope), 1.0
    for order in range(1, 2 * _NARROW_TERMS):
        previous, current = current, slope * current - order * width**2 * previous
        scale /= order + 1
        if order % 2:
            total += current * scale / (2.0 ** (order + 1) * (order + 2))
    return total


def tilted_gaussian_masses(
    edges: Array, loc: Array, scale: Array, tilt: Array | float, origin: Array
) -> Array:
    """Integrals of exp(tilt * (x - origin)) times the Normal(loc, scale) density between successive edges.

    `edges` has shape (..., K + 1), increasing; `origin` (..., K), one per interval; the rest broadcast
    against them. Each interval uses a form that neither overflows nor cancels: a Taylor series where it is
    narrow, a difference of the two tail masses beyond its ends, or the whole mass less both tails.
    """
    left, right = edges[..., :-1], edges[..., 1:]
    centre = (left + right) / 2
    u = (edges - loc) / scale
    v = u - tilt * scale
    tail = jnp.exp(-(u**2) / 2) / _SQRT_2PI * mills_ratio(jnp.where(v < 0, -v, v))
    tail_left = jnp.exp(tilt * (left - origin)) * tail[..., :-1]
    tail_right = jnp.exp(tilt * (right - origin)) * tail[..., 1:]

    width = (right - left) / scale
    u_centre = (centre - loc) / scale
    slope = (u_centre - tilt * scale) * width
    narrow = (width <= _NARROW) & (jnp.abs(slope) <= _NARROW)
    factor = _narrow_factor(jnp.where(narrow, width, 0.0), jnp.where(narrow, slope, 0.0))
    narrow_mass = width * factor * jnp.exp(tilt * (centre - origin) - u_centre**2 / 2) / _SQRT_2PI

    straddles = (v[..., :-1] < 0) & (v[..., 1:] >= 0)
    whole = jnp.exp(jnp.where(straddles & ~narrow, tilt * (loc - origin) + (tilt * scale) ** 2 / 2, 0.0))
    one_side = jnp.where(v[..., :-1] < 0, tail_right - tail_left, tail_left - tail_right)
    return jnp.where(narrow, narrow_mass, jnp.where(straddles, whole - tail_left - tail_right, one_side))


class ClosedForm(ClippedContinuous):
    """A clipped law with integrals of exp(tilt x) over intervals, on which Laplace noise is built."""

    @abstractmethod
    def tilted_masses(self, edges: Array, tilt: Array | float, origin: Array) -> Array:
        """Integrate exp(tilt * (x - origin)) dP(x) over the intervals between edges, atoms excluded.

        Args:
            edges: increasing within [low, high], shape (..., K + 1).
            tilt: per unit of length, shape (..., 1) or a number.
            origin: keeps the exponent small, shape (..., K); it may have leading axes more, as `tilt` may.

        Returns:
            The K integrals, shape (..., K).
        """

    @abstractmethod
    def _range(self) -> tuple[Array, Array]:
        """Return the ends of the interval that holds all but 1e-15 of the law."""

    def points(self, cells: int = 1) -> tuple[Any, Array]:
        """Return points that move with the law, however narrow it is. They do not regard cells."""
        del cells
        first, last = (jnp.clip(end, self.low, self.high)[..., None] for end in self._range())
        x, w = gauss_legendre(np.array([0.0, 1.0]), MOVING_NODES)
        some = last > first
        # A placeholder within the support has a finite density.
        inside = jnp.where(some, first + (last - first) * x, jnp.clip(1.0, self.low, self.high))
        width = jnp.where(some, last - first, 1.0)
        log_density = jnp.moveaxis(self.base.log_prob(jnp.moveaxis(inside, -1, 0)), 0, -1)
        masses = jnp.where(some, log_density + jnp.log(width) + np.log(w), -jnp.inf)
        ends = (jnp.full((*self.batch_shape, 1), end) for end in (self.low, self.high))
        log_atoms = (log_atom[..., None] for log_atom in self.log_atoms())
        return jnp.concatenate([inside, *ends], -1), jnp.concatenate([masses, *log_atoms], -1)

    def cell_masses(self, cells: int) -> Array:
        edges = jnp.asarray(np.linspace(self.low, self.high, cells + 1))
        log_low, log_high = self.log_atoms()
        masses = self.tilted_masses(edges, 0.0, jnp.zeros(cells))
        return masses.at[..., 0].add(jnp.exp(log_low)).at[..., -1].add(jnp.exp(log_high))

    def log_perturbed(self, noise: str, z: Array, scale: Array) -> Array:
        if noise == "gaussian":
            return super().log_perturbed(noise, z, scale)
        inside = jnp.clip(z, self.low, self.high)
        low, high = (jnp.broadcast_to(end, z.shape) for end in (self.low, self.high))
        # What is below the report and what is above it, at once: less to compile.
        edges = jnp.stack([jnp.stack([low, inside], -1), jnp.stack([inside, high], -1)])
        signs = jnp.reshape(jnp.array([1.0, -1.0]), (2,) + (1,) * (z.ndim + 1))
        below, above = self.tilted_masses(edges, signs / scale[..., None], inside[..., None])[..., 0]
        log_low, log_high = self.log_atoms()
        at_low = jnp.exp(log_low + (self.low - inside) / scale)
        at_high = jnp.exp(log_high + (inside - self.high) / scale)
        return jnp.log((at_low + at_high + below + above) / (2 * scale)) - jnp.abs(z - inside) / scale

    def perturbed_cells(self, noise: str, edges: ArrayLike, scale: ArrayLike) -> Array:
        # Under Gaussian noise from points that do not move, whose channel is a constant. Under Laplace noise
        # from what noise carries over each edge: O(K), for any law (METHODS 2.5).
        if noise == "gaussian":
            return mixture_cells(noise, *super().points(), edges, scale)
        # 1. What decays to the left, what to the right, and all, at once: half of the program to trace.
        ends, unit = jnp.asarray(edges), jnp.asarray(scale)[..., None]
        left, right = ends[..., :-1], ends[..., 1:]
        axes = max(ends.ndim, unit.ndim, len(self.batch_shape) + 1)
        signs = jnp.reshape(jnp.array([-1.0, 1.0, 0.0]), (3,) + (1,) * axes)
        inner = jnp.clip(ends, self.low, self.high)
        tilted = self.tilted_masses(inner, signs / unit, jnp.where(signs > 0, right, left))
        to_left, to_right = tilted[0] / 2, tilted[1] / 2
        staying = tilted[2] - to_left - to_right
        # 2. The probabilities that the noise passes each edge upwards from below it, or downwards from above.
        above = _carry(to_right, (ends - ends[..., :1]) / unit)
        from_top = (ends[..., -1:] - ends)[..., ::-1] / unit
        below = _carry(to_left[..., ::-1], from_top)[..., ::-1]
        cells = -jnp.expm1((left - right) / unit) * (above[..., :-1] + below[..., 1:]) + staying
        inside = jnp.concatenate([below[..., :1], cells, above[..., -1:]], axis=-1)
        # 3. The masses at the bounds.
        log_atoms = jnp.stack(self.log_atoms(), -1)
        return inside + mixture_cells(noise, np.array([self.low, self.high]), log_atoms, edges, scale)


class ClippedNormal(ClosedForm):
    """A normal law clipped to [low, high] (METHODS 2.1)."""

    def log_atoms(self) -> tuple[Array, Array]:
        loc, scale = self.base.loc, self.base.scale
        return log_ndtr((self.low - loc) / scale), log_ndtr((loc - self.high) / scale)

    def tilted_masses(self, edges: Array, tilt: Array | float, origin: Array) -> Array:
        loc, scale = jnp.asarray(self.base.loc)[..., None], jnp.asarray(self.base.scale)[..., None]
        return tilted_gaussian_masses(edges, loc, scale, tilt, origin)

    def _range(self) -> tuple[Array, Array]:
        reach = NORMAL_REACH * self.base.scale
        return self.base.loc - reach, self.base.loc + reach


class ClippedExponential(ClosedForm):
    """An exponential law clipped to [low, high] (METHODS 2.2); below zero there is no mass but at `low`."""

    def log_atoms(self) -> tuple[Array, Array]:
        rate = jnp.asarray(self.base.rate)
        at_low = jnp.log(-jnp.expm1(-rate * self.low)) if self.low > 0 else jnp.full(rate.shape, -jnp.inf)
        return at_low, -rate * max(self.high, 0.0)

    def tilted_masses(self, edges: Array, tilt: Array | float, origin: Array) -> Array:
        rate = jnp.asarray(self.base.rate)[..., None]
        edges = jnp.maximum(edges, 0.0)
        left, right = edges[..., :-1], edges[..., 1:]
        growth = (tilt - rate) * (right - left)
        grows = growth > 0
        heavier = jnp.where(grows, right, left)
        weight = rate * jnp.exp(tilt * (heavier - origin) - rate * heavier)
        return weight * (right - left) * _mean_decay(jnp.where(grows, growth, -growth))

    def _range(self) -> tuple[Array, Array]:
        start = jnp.full(self.batch_shape, max(self.low, 0.0))
        return start, start + EXPONENTIAL_REACH / self.base.rate


def _mean_decay(y: Array) -> Array:
    """(1 - exp(-y)) / y for y >= 0, through its limit 1 at zero."""
    small = y < 0.1
    series, term = jnp.ones_like(y), jnp.ones_like(y)
    for order in range(2, 11):
        term = -term * jnp.where(small, y, 0.0) / order
        series += term
    positive = jnp.where(small, 1.0, y)
    return jnp.where(small, series, -jnp.expm1(-positive) / positive)


def _carry(inflow: Array, position: Array) -> Array:
    """Return at each of K + 1 edges the inflow between earlier edges, decayed by exp(-distance).

    inflow k arrives at edge k + 1; `position` increases from 0 in units of the decay length.
    """
    carried = jnp.cumsum(inflow * jnp.exp(position[..., 1:]), axis=-1)
    start = jnp.zeros_like(carried[..., :1])
    return jnp.concatenate([start, carried], axis=-1) * jnp.exp(-position)
