"""Exponentially tilted Gaussian masses of intervals, accurate in the tails and for tiny intervals."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import erfcx

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
