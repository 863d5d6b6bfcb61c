"""The mode of a posterior in unbounded space, and the curvature there: from L-BFGS and Newton's method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky

from inference.sampling.space import Arrays, Space
from inference.sampling.whitening import Slope, descend, finite

Vector = NDArray[np.float64]

NEWTON_STEPS = 20
# Half the squared distance to the mode in posterior sds: this is 0.001 sd.
CLOSE_ENOUGH = 5e-7
COLUMNS_AT_ONCE = 64
# Stands for what is not finite.
LARGEST = 1e100


@dataclass(frozen=True)
class Mode:
    """at (d,): the mode. factor (d, d): lower Cholesky factor of the Hessian. reasons: what went wrong."""

    at: Vector
    factor: Vector
    reasons: tuple[str, ...]


def find_mode(space: Space, start: Vector, data: Arrays) -> Mode:
    """The mode of the posterior in unbounded space, and the curvature there."""
    compiled = jax.jit(jax.value_and_grad(space.potential))
    hessian = jax.jit(lambda vector, data: _hessian(space, vector, data))

    slope = finite(lambda vector: compiled(vector, data))
    return _newton(slope, lambda vector: np.array(hessian(vector, data)), descend(slope, start))


def _newton(slope: Slope, hessian: Callable[[Vector], Vector], vector: Vector) -> Mode:
    """Newton's method with halved steps, until the mode is nearer than a thousandth of an sd."""
    for _ in range(NEWTON_STEPS):
        value, gradient = slope(vector)
        factor, lifted = _factor(hessian(vector))
        step = cho_solve((factor, True), gradient)
        if gradient @ step / 2 < CLOSE_ENOUGH:
            return Mode(vector, factor, (_FLAT,) if lifted else ())
        halves = [0.5**power for power in range(12)]
        shorter = next((part for part in halves if slope(vector - part * step)[0] < value), 0.0)
        if shorter == 0.0:
            break
        vector = vector - shorter * step
    return Mode(vector, factor, ("the posterior's mode was not found: use --method nuts",))


_FLAT = "the posterior has no peak that a Gaussian could follow: use --method nuts"


def _factor(hessian: Vector) -> tuple[Vector, bool]:
    """Lower Cholesky factor, and whether the Hessian is none of a peak: then its diagonal was lifted."""
    peak = bool(np.isfinite(hessian).all())
    # So large and no larger: a lift must be able to exceed it.
    hessian = np.nan_to_num(hessian, posinf=LARGEST, neginf=-LARGEST)
    diagonal = np.abs(np.diag(hessian))
    lift = 0.0
    while True:
        try:
            return cholesky(hessian + lift * np.eye(len(hessian)), lower=True), lift > 0 or not peak
        except (LinAlgError, ValueError):
            lift = max(10 * lift, 1e-6 * float(diagonal.max(initial=1e-6)))


def _hessian(space: Space, vector: Array, data: Arrays) -> Array:
    """The Hessian (d, d), some columns at a time: memory stays near that of the result."""

    def column(direction: Array) -> Array:
        gradient = jax.grad(space.potential)
        return jax.jvp(lambda at: gradient(at, data), (vector,), (direction,))[1]

    unit = jnp.eye(len(vector))
    return jax.lax.map(column, unit, batch_size=min(COLUMNS_AT_ONCE, len(vector)))
