"""Moments of a logistic response under a normal linear predictor, by trapezoid rules (METHODS 4.3, 5.2)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import erf

_SWITCH = 2.0
_VARIANCE_FLOOR = 1e-12
_Z_STEP, _Z_END = 0.3, 8.4
_S_STEP, _S_END = 0.5, 36.0


def _grid(step: float, end: float) -> np.ndarray:
    return np.arange(-round(end / step), round(end / step) + 1) * step


def _response_derivatives(s: Array) -> Array:
    """g = tanh(s / 2) and its first three derivatives, stacked on a new first axis."""
    g = jnp.tanh(s / 2)
    first = (1 - g**2) / 2
    return jnp.stack([g, first, -g * first, first * (g**2 - first)])


def _in_standard_units(loc: Array, sd: Array) -> Array:
    """Trapezoid in z = (s - loc) / sd: error exp(-2 pi^2 / (sd * step)), from the poles of tanh."""
    z = _grid(_Z_STEP, _Z_END)
    weights = jnp.asarray(np.exp(-(z**2) / 2) * _Z_STEP / np.sqrt(2 * np.pi), sd.dtype)
    nodes = loc[..., None] + sd[..., None] * jnp.asarray(z, sd.dtype)
    return jnp.moveaxis(_response_derivatives(nodes) @ weights, 0, -1)


def _in_logits(loc: Array, sd: Array) -> Array:
    """Trapezoid in s against the derivatives of g, which decay as exp(-|s|); g itself by parts."""
    s = jnp.asarray(_grid(_S_STEP, _S_END), sd.dtype)
    derivatives = _response_derivatives(s)[1:] * _S_STEP
    z = (s - loc[..., None]) / sd[..., None]
    density = jnp.exp(-(z**2) / 2) / (jnp.sqrt(2 * jnp.pi) * sd[..., None])
    mean = -erf(z / jnp.sqrt(2.0)) @ derivatives[0] / 2
    return jnp.concatenate([mean[..., None], density @ derivatives.T], axis=-1)


def response_moments(loc: Array, variance: Array) -> Array:
    """E g(s), E g'(s), E g''(s), E g'''(s) for g = 2 sigmoid - 1 and s ~ N(loc, variance): (..., 4).

    Absolute error below 1e-10 at any variance: one rule for a predictor that is narrow beside the sigmoid
    and one for a wide predictor, where Gauss-Hermite nodes would miss the sigmoid's step.
    """
    sd = jnp.sqrt(variance + _VARIANCE_FLOOR)
    narrow = _in_standard_units(loc, jnp.minimum(sd, _SWITCH))
    wide = _in_logits(loc, jnp.maximum(sd, _SWITCH))
    return jnp.where((sd <= _SWITCH)[..., None], narrow, wide)
