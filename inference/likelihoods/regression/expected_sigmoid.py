"""E[sigmoid(t)] for a normal t, and the published rules that approximate it (METHODS 5.2, LDPBI 12.2)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.likelihoods.regression.sigmoid import response_moments

# Table over t / s, s the width of the expected sigmoid.
_TABLE_END, _TABLE_STEP = 40.0, 0.2
_FLOOR = 1e-12


@jax.custom_jvp
def expected_sigmoid(loc: Array, variance: Array) -> Array:
    """E[sigmoid(t)], t ~ N(loc, variance): error below 1e-10 at any variance; broadcasts. O(200) an entry."""
    return (1 + response_moments(*jnp.broadcast_arrays(loc, variance))[..., 0]) / 2


@expected_sigmoid.defjvp
def _expected_sigmoid_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    """By Stein's lemma the slope in loc is E sigmoid', and in the variance E sigmoid'' / 2."""
    loc, variance = jnp.broadcast_arrays(*primals)
    g = response_moments(loc, variance)
    return (1 + g[..., 0]) / 2, g[..., 1] / 2 * tangents[0] + g[..., 2] / 4 * tangents[1]


def expected_sigmoids(loc: Array, variance: Array) -> Array:
    """E[sigmoid(t)] for many loc (...) and one variance (): a table and a quintic, error below 1e-8.

    The table costs 400 evaluations of the rule, each entry a few operations.
    """
    width = jnp.maximum(1.0, jnp.sqrt(variance + _FLOOR) / 2)
    count = round(2 * _TABLE_END / _TABLE_STEP)
    nodes = np.linspace(-_TABLE_END, _TABLE_END, count + 1)
    value, slope, bend = _values_and_slopes(width * jnp.asarray(nodes, width.dtype), variance)
    x = jnp.clip((loc / width + _TABLE_END) / _TABLE_STEP, 0.0, count)
    k = jnp.clip(jnp.floor(x).astype(int), 0, count - 1)
    step = _TABLE_STEP * width
    ends = [(value[i], slope[i] * step, bend[i] * step**2) for i in (k, k + 1)]
    return _quintic(x - k, *ends)


def _values_and_slopes(loc: Array, variance: Array) -> tuple[Array, Array, Array]:
    """E sigmoid, E sigmoid' and E sigmoid''; differentiable in both arguments."""
    g = response_moments(loc, jnp.broadcast_to(variance, loc.shape))
    return (1 + g[..., 0]) / 2, g[..., 1] / 2, g[..., 2] / 2


def _quintic(t: Array, left: tuple[Array, ...], right: tuple[Array, ...]) -> Array:
    """Hermite's quintic on [0, 1] through values, slopes and second derivatives at both ends."""
    (f0, d0, b0), (f1, d1, b1) = left, right
    rise = f1 - f0 - d0 - b0 / 2
    turn = d1 - d0 - b0
    curve = b1 - b0
    cubic = 10 * rise - 4 * turn + curve / 2
    quartic = -15 * rise + 7 * turn - curve
    quintic = 6 * rise - 3 * turn + curve / 2
    return f0 + t * (d0 + t * (b0 / 2 + t * (cubic + t * (quartic + t * quintic))))


def gauss_hermite_sigmoid(loc: Array, variance: Array, nodes: int = 20) -> Array:
    """A baseline: Gauss-Hermite's rule. It misses the sigmoid's step where sd(t) is large."""
    x, w = np.polynomial.hermite_e.hermegauss(nodes)
    t = loc[..., None] + jnp.sqrt(variance)[..., None] * x
    return jax.nn.sigmoid(t) @ (w / w.sum())


def chebyshev_sigmoid(loc: Array, variance: Array, bound: float = 4.0) -> Array:
    """The published baseline: Chebyshev's polynomial of degree 2 on [-bound, bound].

    sigmoid - 1/2 is odd, so the term of degree 2 vanishes and the rule is a straight line in loc, whatever
    the variance. It is clipped to [0, 1].
    """
    del variance
    angles = (np.arange(64) + 0.5) * np.pi / 64
    values = 1 / (1 + np.exp(-bound * np.cos(angles)))
    constant, slope = values.mean(), 2 * np.mean(values * np.cos(angles)) / bound
    return jnp.clip(constant + slope * loc, 0.0, 1.0)
