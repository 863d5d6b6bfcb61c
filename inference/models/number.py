"""The cells of a number's reports, estimates from them, and coordinates for answers at a bound.

If nearly all answers are at a bound, the data determine the law's distance beyond the bound only in units of
its sd: a wide law far out fits like a narrow law nearby. The posterior of location and sd is then a wedge
with a sharp, slanted edge. Special coordinates straighten it.
"""

import math
from typing import cast

import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from inference.laws import Ridge
from inference.likelihoods.numbers.noise import noise_channel
from inference.models.base import IDENTITY, Coordinates, Unbounded
from inference.models.family import priors_of
from inference.models.plain_means import PlainMean
from inference.units import number_units
from ldp_client import Mechanism
from ldp_client.mechanisms.number import Gaussian, Laplace
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions.histogram import REACH, histogram_edges

# The mean answer is at a bound if within WITHIN standard errors of it. A standard error above TELLS, in
# spans, decides nothing.
WITHIN, TELLS = 3.0, 0.02
AT_A_BOUND = "nearly all answers are at a bound: the reports hardly show how far beyond it the law extends"


def bound_met(
    middles: NDArray[np.float64], weights: NDArray[np.float64], standard_error: float
) -> int | None:
    """Return the bound, 0 or 1, at which nearly all answers are, or None.

    middles, weights: of all cells, with the bounds at 0 and 1. standard_error: of the mean, in the same unit.
    """
    mean = float(weights @ middles)
    if standard_error > TELLS:
        return None
    return next((end for end in (0, 1) if (mean - end) * (1 - 2 * end) < WITHIN * standard_error), None)


def ridge_coordinates(question: Question, ridge: Ridge | None, bound: float, least: float) -> Coordinates:
    """Return coordinates for a question whose answers are at a bound, in the units of its law.

    ridge: the sites of location and sd, if the law has them. least: lower limit of the bound for a law of
    logarithms; smaller values are hardly distinguishable from zero.
    """
    # A uniform prior has other ends and a different unbounded space.
    bounded = any(prior["distribution"] == "uniform" for prior in priors_of(question).values())
    if bounded or ridge is None:
        return IDENTITY
    return wedge(ridge.location, ridge.sd, math.log(max(bound, least)) if ridge.of_logarithms else bound)


def wedge(location: str, sd: str, bound: float) -> Coordinates:
    """Return coordinates w and log sd, with location = bound + sd sinh(w): location is real, sd positive."""

    def forward(values: Unbounded) -> tuple[Unbounded, Array]:
        w, log_sd = values[location], values[sd]
        log_volume = jnp.sum(log_sd + jnp.logaddexp(w, -w) - math.log(2))
        return {**values, location: bound + jnp.exp(log_sd) * jnp.sinh(w)}, log_volume

    def inverse(values: Unbounded) -> Unbounded:
        return {**values, location: jnp.arcsinh((values[location] - bound) * jnp.exp(-values[sd]))}

    return Coordinates(forward, inverse)


# The noise's variance in units of its squared scale.
VARIANCE = {"laplace": 2.0, "gaussian": 1.0}
# Answers for which the channel is computed, with the bounds at 0 and 1.
ANSWERS = np.linspace(0.0, 1.0, 65)


def plain_mean(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> PlainMean | None:
    """Estimate the mean of the clipped answers without a law; None without reports."""
    n = summary.n
    if n == 0:
        return None
    low, width = number_units(question)
    edges, scale = cell_edges(mechanism)
    weight, middles = summary.values / n, cell_middles(edges, scale)
    mean = float(weight @ middles)
    variance = max(float(weight @ middles**2) - mean**2, VARIANCE[mechanism.name] * scale**2)
    return PlainMean(low + width * mean, width * math.sqrt(variance / n))


def cell_edges(mechanism: Mechanism) -> tuple[NDArray[np.float64], float]:
    """Return cell edges and noise scale, both with the bounds at 0 and 1."""
    number = cast("Laplace | Gaussian", mechanism)
    edges = histogram_edges(number.levels, REACH[mechanism.name])
    return edges / number.levels, number.scale / number.levels


def middle_cells(mechanism: Mechanism) -> NDArray[np.float64]:
    """Return probabilities (cells,) of a report in each cell if the answer is the middle of the bounds."""
    number = cast("Laplace | Gaussian", mechanism)
    edges, scale = cell_edges(mechanism)
    return noise_channel(mechanism.name, [(number.levels // 2) / number.levels], edges, scale)[0]


def cell_middles(edges: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Return the middles of all cells; outer cells' reports average one noise scale beyond their edge."""
    return np.concatenate([[edges[0] - scale], (edges[1:] + edges[:-1]) / 2, [edges[-1] + scale]])
