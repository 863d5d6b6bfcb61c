"""Where nearly all answers lie at a bound: what that leaves open, and coordinates that make it straight.

How far beyond the bound a law lies is then known in units of its own sd alone: a wide law that lies far out
says the same as a narrow one nearby. Of location and sd that is a wedge with a sharp and slanted edge.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from inference.models.base import IDENTITY, Coordinates, Unbounded
from inference.models.family import priors_of
from schemas import Question

# Standard errors of the mean answer within which it is at a bound, and the largest that tells, in spans.
WITHIN, TELLS = 3.0, 0.02
AT_A_BOUND = "nearly all answers lie at a bound: the reports tell little of how far beyond it the law reaches"


class Ridge(NamedTuple):
    """The sites of a law's location and sd, and whether they are of logarithms."""

    location: str
    sd: str
    of_logarithms: bool


def bound_met(
    middles: NDArray[np.float64], weights: NDArray[np.float64], standard_error: float
) -> int | None:
    """The bound, 0 or 1, at which nearly all answers lie, None where at neither.

    middles, weights: of all cells, the bounds at 0 and 1; standard_error: that of the mean, in the same unit.
    """
    mean = float(weights @ middles)
    if standard_error > TELLS:
        return None
    return next((end for end in (0, 1) if (mean - end) * (1 - 2 * end) < WITHIN * standard_error), None)


def ridge_coordinates(question: Question, ridge: Ridge | None, bound: float, least: float) -> Coordinates:
    """Coordinates for a question whose answers lie at a bound, in the units of its law.

    ridge: of a law that has a location and an sd. least: what can hardly be told from zero, for logarithms of
    a bound that is not above it.
    """
    # A uniform prior has an end of its own, and another unbounded space.
    bounded = any(prior["distribution"] == "uniform" for prior in priors_of(question).values())
    if bounded or ridge is None:
        return IDENTITY
    return wedge(ridge.location, ridge.sd, math.log(max(bound, least)) if ridge.of_logarithms else bound)


def wedge(location: str, sd: str, bound: float) -> Coordinates:
    """location = bound + sd sinh(w) and the logarithm of sd, for a site that is real and a positive one."""

    def forward(values: Unbounded) -> tuple[Unbounded, Array]:
        w, log_sd = values[location], values[sd]
        log_volume = jnp.sum(log_sd + jnp.logaddexp(w, -w) - math.log(2))
        return {**values, location: bound + jnp.exp(log_sd) * jnp.sinh(w)}, log_volume

    def inverse(values: Unbounded) -> Unbounded:
        return {**values, location: jnp.arcsinh((values[location] - bound) * jnp.exp(-values[sd]))}

    return Coordinates(forward, inverse)
