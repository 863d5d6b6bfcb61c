"""Finds a posterior's centre and its width in each direction, before any draw.

A sampler that steps in the units of this shape needs few steps for a draw, and hardly any warm-up.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

Vector = NDArray[np.float64]
# −log density and its gradient at a vector.
Slope = Callable[[Vector], tuple[float, Vector]]

# Up to so many dimensions a shape has correlations, beyond them a width for each coordinate.
MOST_DENSE = 256
# In unbounded coordinates: no direction is taken as wider than this before draws have shown it.
WIDEST = 10.0
# The step of difference quotients, in unbounded coordinates.
NUDGE = 1e-4
PROBES = 32
# As a share of the largest variance: smaller variances are rounding.
ROUNDING = 1e-15
# L-BFGS ends here; a whitened sampler needs no better centre.
MOST_STEPS = 300
# The most restarts of the search.
SEARCHES = 5


class Shape(NamedTuple):
    """centre (d,): the mode. factor: covariance = factor factorᵀ, (d, d), or its diagonal's root, (d,)."""

    centre: Vector
    factor: Vector

    def stretch(self, white: Vector) -> Vector:
        """factor × white, for white (…, d)."""
        return white @ self.factor.T if self.factor.ndim == 2 else white * self.factor


def finite(slope: Callable[[Vector], tuple[object, object]]) -> Slope:
    """Return the slope with a wall without direction where it is not finite; searches step back from it."""

    def walled(vector: Vector) -> tuple[float, Vector]:
        value, gradient = (np.asarray(part, np.float64) for part in slope(vector))
        if np.isfinite(value) and np.isfinite(gradient).all():
            return float(value), gradient
        return 1e300, np.zeros_like(vector)

    return walled


def descend(slope: Slope, start: Vector) -> Vector:
    """A vector near the minimum, by L-BFGS."""
    lowest, at = np.inf, np.asarray(start, np.float64)

    def watched(vector: Vector) -> tuple[float, Vector]:
        nonlocal lowest, at
        value, gradient = slope(vector)
        if value < lowest:
            lowest, at = value, vector.copy()
        return value, gradient

    # Close to the wall of `finite` a search can end at not-a-number: it restarts from its lowest point.
    for _ in range(SEARCHES):
        found = minimize(watched, at, jac=True, method="L-BFGS-B", options={"maxiter": MOST_STEPS})
        if np.isfinite(found.x).all():
            return np.asarray(found.x, np.float64)
    return at


def shape_of(slope: Slope, start: Vector) -> Shape:
    """Return the mode near `start`, and the widths from the curvature there."""
    centre = descend(slope, start)
    if len(centre) > MOST_DENSE:
        # The Hessian's diagonal, estimated with random signs (Bekas, Kokiopoulou, Saad 2007).
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (PROBES, len(centre)))
        curvatures = np.mean([sign * _turn(slope, centre, sign) for sign in signs], axis=0)
        return Shape(centre, _widths(curvatures))
    values, vectors = np.linalg.eigh(hessian_of(slope, centre))
    return Shape(centre, vectors * _widths(values))


def _widths(curvatures: Vector) -> Vector:
    """A saddle's directions are as wide as its curvature is strong."""
    return np.asarray(1 / np.sqrt(np.maximum(np.abs(np.nan_to_num(curvatures)), WIDEST**-2)))


def _turn(slope: Slope, at: Vector, direction: Vector) -> Vector:
    """Hessian times direction, by a central difference of gradients."""
    return (slope(at + NUDGE * direction)[1] - slope(at - NUDGE * direction)[1]) / (2 * NUDGE)


def hessian_of(slope: Slope, at: Vector) -> Vector:
    """The Hessian (d, d), by central differences of gradients."""
    rows = np.stack([_turn(slope, at, direction) for direction in np.eye(len(at))])
    return np.asarray(np.nan_to_num((rows + rows.T) / 2))


def reshaped(shape: Shape, vectors: Vector) -> Shape:
    """Return the shape from draws (…, d), shrunk towards the older shape: the more, the fewer they are.

    Each draw counts as one observation and the older shape as 5 d, or as 10 if each coordinate has its own
    width.
    """
    flat = vectors.reshape(-1, vectors.shape[-1])
    count, dimension = flat.shape
    if shape.factor.ndim == 1:
        weight = count / (count + 10)
        variances = weight * flat.var(axis=0) + (1 - weight) * shape.factor**2
        return Shape(flat.mean(axis=0), np.sqrt(variances))
    weight = count / (count + 5 * dimension)
    seen = np.atleast_2d(np.cov(flat, rowvar=False))
    mixed = weight * seen + (1 - weight) * shape.factor @ shape.factor.T
    values, vectors = np.linalg.eigh(mixed)
    # A shape of very unequal widths may be indefinite by rounding alone.
    return Shape(flat.mean(axis=0), vectors * np.sqrt(np.maximum(values, ROUNDING * values[-1])))
