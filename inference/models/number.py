"""Models of one number under Laplace or Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.typing import NDArray
from scipy import stats

from inference.likelihoods import BinnedPerturbed, GaussianNoise, LaplaceNoise, clipped
from inference.likelihoods.numbers.discrete import MOST_POINTS
from inference.likelihoods.numbers.noise import Noise
from inference.models.base import Model
from inference.models.number_laws import LAWS, Start
from inference.models.number_ridge import AT_A_BOUND, bound_met, ridge_coordinates
from inference.units import Units, number_units
from ldp_client import Mechanism
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.gaussian import Gaussian
from ldp_client.mechanisms.laplace import Laplace
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions.histogram import REACH, histogram_edges

NOISE: dict[str, type[Noise]] = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}
# The noise's variance in units of its squared scale.
_VARIANCE = {"laplace": 2.0, "gaussian": 1.0}
_LAWS = {"laplace": stats.laplace, "gaussian": stats.norm}
# Of which the channel is stated.
ANSWERS = 65


def number_model(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """x from the law that the question's model names, clipped to the bounds.

    Raises InputError for a law on the whole numbers whose bounds are too far apart to sum over.
    """
    law, place = LAWS[question.model.name], place_of(question)
    edges, noise_scale = cell_edges(mechanism)
    noise = NOISE[mechanism.name](noise_scale * place.stretch)
    own_edges = place.shift + place.stretch * edges

    def program(n: int, counts: Array) -> None:
        base = clipped(law.draw(question), *place.bounds)
        numpyro.sample("reports", BinnedPerturbed(base, noise, own_edges, n), obs=jnp.asarray(counts))

    variance = _VARIANCE[mechanism.name] * noise_scale**2
    start = law.start(place.start(*_moments(summary, edges, noise_scale, variance)))
    data = {"n": summary.n, "counts": summary.values}
    channel = partial(_channel, mechanism, edges, noise_scale)
    model = Model(program, data, start, lambda draws: law.own(draws, place.units), channel=channel)
    error = math.sqrt(variance / max(summary.n, 1))
    end = bound_met(_middles(edges, noise_scale), summary.values / max(summary.n, 1), error)
    if end is None:
        return model
    straight = ridge_coordinates(question, place.bounds[end], place.stretch * error)
    return replace(model, notes=(AT_A_BOUND,), coordinates=straight)


class Place(NamedTuple):
    """Where a question's bounds lie in its law's units: at `shift` and `shift` + `stretch`."""

    units: Units
    shift: float
    stretch: float

    @property
    def bounds(self) -> tuple[float, float]:
        """The bounds in the law's units."""
        return self.shift, self.shift + self.stretch

    def start(self, mean: float, variance: float) -> Start:
        """Rough moments in the law's units, from those with the bounds at 0 and 1."""
        return Start(max(self.shift + self.stretch * mean, 0.02 * self.stretch), variance * self.stretch**2)


def place_of(question: Question) -> Place:
    """Raises InputError for bounds that a law has no room in, or too far apart to sum over whole numbers."""
    law = LAWS[question.model.name]
    low, width = number_units(question)
    if law.positive and low + width <= 0:
        raise InputError(
            f"{question.id}: {question.model.name!r} is a law of positive numbers, and the bounds hold none"
        )
    units = law.units(question)
    place = Place(units, (low - units.zero) / units.unit, width / units.unit)
    if law.whole and place.bounds[1] - min(place.shift, 0.0) > MOST_POINTS:
        raise InputError(
            f"{question.id}: a model of whole numbers needs bounds at most {MOST_POINTS} apart and from 0"
        )
    return place


def cell_edges(mechanism: Mechanism) -> tuple[NDArray[np.float64], float]:
    """Cell edges and noise scale, both with the bounds at 0 and 1."""
    number = cast("Laplace | Gaussian", mechanism)
    edges = histogram_edges(number.levels, REACH[mechanism.name])
    return edges / number.levels, number.scale / number.levels


def _channel(mechanism: Mechanism, edges: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Probabilities (answers, cells) of reports in the cells, given answers from bound to bound."""
    answers = np.linspace(0, 1, ANSWERS)[:, None]
    below = _LAWS[mechanism.name].cdf(edges, answers, scale)
    ends = np.zeros((ANSWERS, 1))
    return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)


def _middles(edges: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Of all cells: reports beyond the outer edges lie one noise scale outside on average."""
    return np.concatenate([[edges[0] - scale], (edges[1:] + edges[:-1]) / 2, [edges[-1] + scale]])


def _moments(
    summary: QuestionSummary, edges: NDArray[np.float64], scale: float, noise_variance: float
) -> tuple[float, float]:
    """Rough mean and variance of the clipped answers, kept inside their possible range."""
    middles = _middles(edges, scale)
    squares = middles**2
    squares[[0, -1]] += scale**2
    weight = summary.values / max(summary.n, 1)
    mean = float(np.clip(weight @ middles, 0.02, 0.98)) if summary.n else 0.5
    variance = float(weight @ squares) - mean**2 - noise_variance if summary.n else 0.1
    return mean, float(np.clip(variance, 0.01, 0.25))
