"""The Laplace approximation: a Gaussian at the posterior's mode, in unbounded space, and how far off it is.

The mode is found from the moment estimate by L-BFGS and Newton's method; draws are transformed back to
the parameters. Importance weights of the draws against the true posterior tell whether it can be trusted:
not where their Pareto shape k̂ (Vehtari, Simpson, Gelman, Yao, Gabry 2024) is above 0.7, or where they leave
fewer than 400 effective draws. Where it can, the draws are resampled by them, which mends what is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_solve, cholesky, solve_triangular
from scipy.optimize import minimize

from inference.importance import resample, weigh
from inference.models.base import Model
from inference.sampling import CHAINS, KEPT, Sampled
from inference.space import Arrays, Space, as_arrays, space_of
from schemas.errors import InputError

Vector = NDArray[np.float64]

# The Hessian is dense: 1.2 GB at this size, and about a minute for its factor.
MOST_DIMENSIONS = 12_000
NEWTON_STEPS = 20
# Half the squared distance to the mode in posterior sds: this is 0.001 sd.
CLOSE_ENOUGH = 5e-7
COLUMNS_AT_ONCE, DRAWS_AT_ONCE = 64, 250


@dataclass(frozen=True)
class Mode:
    """at (d,): the mode. factor (d, d): lower Cholesky factor of the Hessian. reasons: what went wrong."""

    at: Vector
    factor: Vector
    reasons: tuple[str, ...]


def approximate(model: Model, seed: int, draws: int = CHAINS * KEPT) -> Sampled:
    """Draws from the Gaussian at the mode, resampled, as four chains; reasons say when it is poor.

    Raises InputError beyond 12,000 parameters, where the Hessian would not fit into memory.
    """
    with jax.enable_x64(True):
        space, data = space_of(model), as_arrays(model.data)
        if space.dimension > MOST_DIMENSIONS:
            raise InputError(
                f"--method laplace takes at most {MOST_DIMENSIONS} parameters, not {space.dimension}: "
                "use --method nuts"
            )
        start = jax.jit(space.start)(as_arrays(model.initial, float), data)
        mode = find_mode(space, np.asarray(start), data)
        white = np.random.default_rng(seed).normal(size=(draws, len(mode.at)))
        vectors = mode.at + solve_triangular(mode.factor, white.T, lower=True, trans="T").T
        potentials, sites = _evaluated(space, vectors, data)
    worth = weigh(-potentials + np.sum(white**2, axis=1) / 2)
    rows = resample(worth, seed, CHAINS) if worth.good else np.arange(draws)
    shape = (CHAINS, len(rows) // CHAINS)
    chains = {name: value[rows].reshape(*shape, *value.shape[1:]) for name, value in sites.items()}
    return Sampled(chains, np.zeros(shape, dtype=bool), (*mode.reasons, *worth.reasons()))


def find_mode(space: Space, start: Vector, data: Arrays) -> Mode:
    """The mode of the posterior in unbounded space, and the curvature there."""
    compiled = jax.jit(jax.value_and_grad(space.potential))
    hessian = jax.jit(lambda vector, data: _hessian(space, vector, data))

    def slope(vector: Vector) -> tuple[float, Vector]:
        value, gradient = compiled(vector, data)
        good = bool(np.isfinite(value)) and bool(np.isfinite(gradient).all())
        return (float(value), np.asarray(gradient)) if good else (1e300, np.zeros_like(vector))

    vector = minimize(slope, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    return _newton(slope, lambda vector: np.array(hessian(vector, data)), vector)


def _newton(
    slope: Callable[[Vector], tuple[float, Vector]], hessian: Callable[[Vector], Vector], vector: Vector
) -> Mode:
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
    """Lower Cholesky factor; the diagonal is lifted (and that is said) where it is not positive definite."""
    diagonal = np.abs(np.diag(hessian))
    lift = 0.0
    while True:
        try:
            return cholesky(hessian + lift * np.eye(len(hessian)), lower=True), lift > 0
        except (LinAlgError, ValueError):
            lift = max(10 * lift, 1e-6 * float(np.nan_to_num(diagonal).max(initial=1e-6)))
            hessian = np.nan_to_num(hessian)


def _hessian(space: Space, vector: Array, data: Arrays) -> Array:
    """The Hessian (d, d), some columns at a time: memory stays near that of the result."""

    def column(direction: Array) -> Array:
        gradient = jax.grad(space.potential)
        return jax.jvp(lambda at: gradient(at, data), (vector,), (direction,))[1]

    unit = jnp.eye(len(vector))
    return jax.lax.map(column, unit, batch_size=min(COLUMNS_AT_ONCE, len(vector)))


def _evaluated(space: Space, vectors: Vector, data: Arrays) -> tuple[Vector, dict[str, Vector]]:
    """Potentials (draws,) and sites of vectors (draws, d)."""

    def one(vector: Array, data: Arrays) -> tuple[Array, dict[str, Array]]:
        return space.potential(vector, data), space.sites(vector, data)

    potentials, sites = jax.jit(
        lambda rows, data: jax.lax.map(lambda row: one(row, data), rows, batch_size=DRAWS_AT_ONCE)
    )(vectors, data)
    return np.asarray(potentials), {name: np.asarray(value, np.float64) for name, value in sites.items()}
