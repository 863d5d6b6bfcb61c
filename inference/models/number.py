"""Condition the law of one number on noisy reports or a secure sum's total.

If nearly all answers are at a bound, the data determine the law's distance beyond the bound only in units of
its sd: a wide law far out fits like a narrow law nearby. The posterior of location and sd is then a wedge
with a sharp, slanted edge. Special coordinates straighten it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray

from inference.laws import Ridge
from inference.likelihoods import BinnedPerturbed, ClippedContinuous, GaussianNoise, LaplaceNoise, clipped
from inference.likelihoods.common import CellCounts
from inference.likelihoods.numbers.clipped import MOST_POINTS
from inference.likelihoods.numbers.closed_forms import ClosedForm
from inference.likelihoods.numbers.noise import Noise, noise_channel
from inference.models import totals
from inference.models.base import (
    IDENTITY,
    Coordinates,
    Draws,
    Model,
    Sampling,
    Summaries,
    Unbounded,
    notes_of,
)
from inference.models.family import priors_of
from inference.models.plain_means import Clipped, PlainMean, of_two_sums, two_sums_notes
from inference.models.refusals import told_by
from inference.units import Units, number_units
from ldp_client import Mechanism
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.number import Gaussian, Laplace
from ldp_client.mechanisms.summed_gaussian import SummedHistogram
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions.histogram import REACH, histogram_edges

if TYPE_CHECKING:
    from inference.models.number_law import NumberModel

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


NOISE: dict[str, type[Noise]] = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}
# The noise's variance in units of its squared scale.
_VARIANCE = {"laplace": 2.0, "gaussian": 1.0}
# A law whose sd is a smaller part of the bounds' distance falls between the quadrature's nodes. In at most
# this share of draws that is harmless.
NARROWEST, FEW_DRAWS = 1 / 512, 0.05
# Answers for which the channel is computed, with the bounds at 0 and 1.
ANSWERS = np.linspace(0.0, 1.0, 65)


def of_reports(
    family: NumberModel, question: Question, mechanism: Mechanism, summary: QuestionSummary
) -> Model:
    """Return the model of x from the law, clipped to the bounds, under Laplace or Gaussian noise.

    Raises InputError for a law on the whole numbers whose bounds are too far apart to sum over.
    """
    place, (low, width) = place_of(family, question), number_units(question)
    told = told_by(mechanism, summary, middle_cells)
    data = {"n": summary.n, "counts": told.values}
    mechanism, summary = told.numbers, told.answers
    edges, noise_scale = cell_edges(mechanism)
    noise = NOISE[mechanism.name](noise_scale * place.stretch)
    own_edges = place.shift + place.stretch * edges

    def program(n: int, counts: Array) -> None:
        base = clipped(family.draw(question), *place.bounds)
        logs = told.law(question, BinnedPerturbed(base, noise, own_edges, n).log_cell_probs)
        numpyro.sample("reports", CellCounts(logs, n), obs=jnp.asarray(counts))

    variance = _VARIANCE[mechanism.name] * noise_scale**2
    start = {**place.start(family), **told.start}
    channel = (
        None if question.refusal else partial(noise_channel, mechanism.name, ANSWERS, edges, noise_scale)
    )
    plain = plain_mean(question, mechanism, summary)
    model = Model(
        program,
        data,
        start,
        lambda draws: family.own(draws, place.units),
        checks=(notes_of(partial(_too_narrow, family, place, mechanism.name)),),
        derived=lambda sites: {
            "implied": family.implied(question, sites),
            "clipped": plain and Clipped(plain, _beyond(family, place, sites), low, low + width),
        },
        summaries=Summaries(channel, bounds=(low, low + width)),
    )
    error = math.sqrt(variance / max(summary.n, 1))
    end = bound_met(cell_middles(edges, noise_scale), summary.values / max(summary.n, 1), error)
    if end is None:
        return model
    straight = ridge_coordinates(question, family.law.ridge, place.bounds[end], place.stretch * error)
    return replace(model, notes=(AT_A_BOUND, *model.notes), sampling=Sampling(coordinates=straight))


def of_total(
    family: NumberModel, question: Question, mechanism: Mechanism, summary: QuestionSummary
) -> Model:
    """Return the model of x from the law, clipped to the bounds, under a secure sum's central noise."""
    place = place_of(family, question)
    n, noise_sd, values = totals.total_of(mechanism, summary)
    cells = mechanism.size if isinstance(mechanism, SummedHistogram) else None

    def program(n: int, total: Array) -> None:
        base = clipped(family.draw(question), *place.bounds)
        if cells is None:
            seen: dist.Distribution = totals.noisy_moments(totals.signed_moments(base), n, noise_sd)
        else:
            seen = totals.noisy_counts(base.cell_masses(cells), n, noise_sd)
        numpyro.sample("reports", seen, obs=jnp.asarray(total))

    start = place.start(family)
    if cells is not None:
        notes = totals.approximation_notes(n, noise_sd, values)
    else:
        low, width = number_units(question)
        half = width / 2
        notes = two_sums_notes({"": of_two_sums(values, n, noise_sd, low + half, half)} if n else {})
    data, own = {"n": n, "total": values}, lambda draws: family.own(draws, place.units)
    checks = (notes_of(partial(_too_narrow, family, place, mechanism.name)),)

    def derived(sites: Draws) -> dict[str, Any]:
        return {"implied": family.implied(question, sites)}

    return Model(program, data, start, own, notes, checks, derived)


class Place(NamedTuple):
    """A question's bounds in its law's units: `shift` and `shift` + `stretch`."""

    units: Units
    shift: float
    stretch: float

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the bounds in the law's units."""
        return self.shift, self.shift + self.stretch

    def start(self, family: NumberModel) -> dict[str, object]:
        """Return {site: value} about the middle of the bounds."""
        return family.law.start(max(self.shift + self.stretch / 2, 0.02 * self.stretch))


def place_of(family: NumberModel, question: Question) -> Place:
    """Return the place of the bounds in the law's units.

    Raises InputError if a positive law has no room within the bounds, or a law on the whole numbers has
    bounds too far apart to sum over.
    """
    low, width = number_units(question)
    if family.law.positive and low + width <= 0:
        raise InputError(
            f"{question.id}: {question.model.name!r} is a law of positive numbers, and the bounds hold none",
            code="fit.no_positive_bounds",
        )
    units = family.units(question)
    place = Place(units, (low - units.zero) / units.unit, width / units.unit)
    if family.law.whole and place.bounds[1] - min(place.shift, 0.0) > MOST_POINTS:
        raise InputError(
            f"{question.id}: a model of whole numbers needs bounds at most {MOST_POINTS} apart and from 0",
            code="fit.bounds_too_wide",
        )
    return place


def _too_narrow(family: NumberModel, place: Place, noise: str, draws: Draws) -> tuple[str, ...]:
    """Return a note if the posterior has laws too narrow for quadrature; closed forms need none."""
    base = clipped(family.at(draws), *place.bounds)
    closed = isinstance(base, ClosedForm) and noise != "gaussian"
    if closed or not isinstance(base, ClippedContinuous):
        return ()
    narrow = float(np.mean(np.sqrt(base.base.variance) < NARROWEST * place.stretch))
    if narrow <= FEW_DRAWS:
        return ()
    return (
        f"{100 * narrow:.0f} % of the posterior are laws so narrow compared with the bounds (sd below 1/512 "
        "of their distance) that the likelihood is accurate only to a few thousandths: with very many "
        "reports intervals are wrong. Ask again with narrower bounds, or use the exact model normal",
    )


def _beyond(family: NumberModel, place: Place, draws: Draws) -> float:
    """Return the share of people that the law puts beyond the bounds; none of whole numbers."""
    if family.law.whole:
        return 0.0
    # In double precision, like the draws: JAX would reuse programs compiled for single precision.
    with jax.enable_x64(True):
        base = clipped(family.at(draws), *place.bounds)
        low, high = base.log_atoms()
    return float(np.mean(np.exp(low) + np.exp(high)))


def plain_mean(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> PlainMean | None:
    """Estimate the mean of the clipped answers without a law; None without reports."""
    n = summary.n
    if n == 0:
        return None
    low, width = number_units(question)
    edges, scale = cell_edges(mechanism)
    weight, middles = summary.values / n, cell_middles(edges, scale)
    mean = float(weight @ middles)
    variance = max(float(weight @ middles**2) - mean**2, _VARIANCE[mechanism.name] * scale**2)
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
