"""The models of a number by a law: each law of `inference.laws` under Laplace or Gaussian noise, or a sum."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray
from numpyro.distributions import Distribution

from inference.laws import NUMBER_LAWS, NumberLaw
from inference.likelihoods import BinnedPerturbed, ClippedContinuous, GaussianNoise, LaplaceNoise, clipped
from inference.likelihoods.common import CellCounts
from inference.likelihoods.numbers.clipped import MOST_POINTS
from inference.likelihoods.numbers.closed_forms import ClosedForm
from inference.likelihoods.numbers.noise import Noise, noise_channel
from inference.models import number, totals
from inference.models.base import Draws, Model, Sampling, Summaries, Truth, notes_of
from inference.models.family import Family, Priors, add_model, draw
from inference.models.plain_means import Clipped, of_two_sums, two_sums_notes
from inference.models.refusals import told_by, with_refusals
from inference.results.answer_law import Implied
from inference.units import Units, number_units
from ldp_client import Mechanism
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.summed_gaussian import SummedHistogram
from schemas import Question
from summaries import QuestionSummary

Parameters = dict[str, NDArray[np.float64]]


NOISE: dict[str, type[Noise]] = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}
# A law whose sd is a smaller part of the bounds' distance falls between the quadrature's nodes. In at most
# this share of draws that is harmless.
NARROWEST, FEW_DRAWS = 1 / 512, 0.05


class Place(NamedTuple):
    """A question's bounds in its law's units: `shift` and `shift` + `stretch`."""

    units: Units
    shift: float
    stretch: float

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the bounds in the law's units."""
        return self.shift, self.shift + self.stretch


class NumberModel(Family):
    """A model of one number by its law."""

    reads = ("laplace", "gaussian")

    def __init__(self, name: str, law: NumberLaw) -> None:
        self.name, self.law = name, law

    def priors(self, question: Question) -> Priors:
        return self.law.priors(question) if self.law.priors else super().priors(question)

    def units(self, question: Question) -> Units:
        """Return the units in which the law computes: own = zero + unit × scaled."""
        if self.law.whole:
            return Units(0.0, 1.0)
        zero, unit = number_units(question)
        return Units(0.0 if self.law.positive else zero, unit)

    def _scales(self, units: Units) -> dict[str, tuple[float, float]]:
        """Return zero and unit of each parameter: in own units it is zero + unit × site."""
        return {name: measure(*units) for name, measure in self.law.parameters.items()}

    def draw(self, question: Question) -> Distribution:
        """Draw the sites from their priors, inside a NumPyro program; return the law before clipping."""
        scales = self._scales(self.units(question))
        return self.law.distribution(**{name: draw(question, name, *scale) for name, scale in scales.items()})

    def at(self, draws: Draws) -> Distribution:
        """Return the laws before clipping at draws of the sites, in the law's units."""
        return self.law.distribution(**{name: jnp.asarray(draws[name]) for name in self.law.parameters})

    def own(self, draws: Draws, units: Units) -> Parameters:
        """Turn draws of the sites into parameters in the question's own units."""
        return {name: zero + unit * draws[name] for name, (zero, unit) in self._scales(units).items()}

    def implied(self, question: Question, draws: Draws) -> Implied:
        """Compute from draws of the sites what they imply for answers between the bounds."""
        units = self.units(question)
        low, width = number_units(question)

        def of(asked: Callable[[Distribution], Any]) -> NDArray[np.float64]:
            with jax.enable_x64(True):
                return np.asarray(asked(self.at(draws)), np.float64)

        return Implied(
            low,
            low + width,
            lambda value: of(lambda law: 1 - self._below(law, (value - units.zero) / units.unit)),
            lambda: of(lambda law: units.zero + units.unit * law.mean),
        )

    def _below(self, law: Distribution, value: float) -> Any:
        """Return the share at or below a value, in the law's units."""
        if not self.law.whole:
            return law.cdf(value)
        # Some laws on the whole numbers have no cdf.
        places = jnp.arange(math.floor(value) + 1).reshape(-1, *(1 for _ in law.batch_shape))
        return jax.lax.map(lambda place: jnp.exp(law.log_prob(place)), places).sum(axis=0)

    def place(self, question: Question) -> Place:
        """Return the place of the bounds in the law's units.

        Raises InputError if a positive law has no room within the bounds, or a law on the whole numbers has
        bounds too far apart to sum over.
        """
        low, width = number_units(question)
        if self.law.positive and low + width <= 0:
            raise InputError(
                f"{question.id}: {question.model.name!r} is a law of positive numbers, and the bounds hold "
                "none",
                code="fit.no_positive_bounds",
            )
        units = self.units(question)
        place = Place(units, (low - units.zero) / units.unit, width / units.unit)
        if self.law.whole and place.bounds[1] - min(place.shift, 0.0) > MOST_POINTS:
            raise InputError(
                f"{question.id}: a model of whole numbers needs bounds at most {MOST_POINTS} apart and from "
                "0",
                code="fit.bounds_too_wide",
            )
        return place

    def start(self, place: Place) -> dict[str, object]:
        """Return {site: value} about the middle of the bounds."""
        return self.law.start(max(place.shift + place.stretch / 2, 0.02 * place.stretch))

    def condition(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        """Return the model of x from the law, clipped to the bounds, under Laplace or Gaussian noise.

        Raises InputError for a law on the whole numbers whose bounds are too far apart to sum over.
        """
        place, (low, width) = self.place(question), number_units(question)
        told = told_by(mechanism, summary, number.middle_cells)
        data = {"n": summary.n, "counts": told.values}
        mechanism, summary = told.numbers, told.answers
        edges, noise_scale = number.cell_edges(mechanism)
        noise = NOISE[mechanism.name](noise_scale * place.stretch)
        own_edges = place.shift + place.stretch * edges

        def program(n: int, counts: Array) -> None:
            base = clipped(self.draw(question), *place.bounds)
            logs = told.law(question, BinnedPerturbed(base, noise, own_edges, n).log_cell_probs)
            numpyro.sample("reports", CellCounts(logs, n), obs=jnp.asarray(counts))

        variance = number.VARIANCE[mechanism.name] * noise_scale**2
        start = {**self.start(place), **told.start}
        channel = (
            None
            if question.refusal
            else partial(noise_channel, mechanism.name, number.ANSWERS, edges, noise_scale)
        )
        plain = number.plain_mean(question, mechanism, summary)
        model = Model(
            program,
            data,
            start,
            lambda draws: self.own(draws, place.units),
            checks=(notes_of(partial(self._too_narrow, place, mechanism.name)),),
            derived=lambda sites: {
                "implied": self.implied(question, sites),
                "clipped": plain and Clipped(plain, self._beyond(place, sites), low, low + width),
            },
            summaries=Summaries(channel, bounds=(low, low + width)),
        )
        error = math.sqrt(variance / max(summary.n, 1))
        end = number.bound_met(
            number.cell_middles(edges, noise_scale), summary.values / max(summary.n, 1), error
        )
        if end is None:
            return model
        straight = number.ridge_coordinates(
            question, self.law.ridge, place.bounds[end], place.stretch * error
        )
        return replace(
            model, notes=(number.AT_A_BOUND, *model.notes), sampling=Sampling(coordinates=straight)
        )

    def condition_on_total(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        """Return the model of x from the law, clipped to the bounds, under a secure sum's central noise."""
        place = self.place(question)
        n, noise_sd, values = totals.total_of(mechanism, summary)
        cells = mechanism.size if isinstance(mechanism, SummedHistogram) else None

        def program(n: int, total: Array) -> None:
            base = clipped(self.draw(question), *place.bounds)
            if cells is None:
                seen: Distribution = totals.noisy_moments(totals.signed_moments(base), n, noise_sd)
            else:
                seen = totals.noisy_counts(base.cell_masses(cells), n, noise_sd)
            numpyro.sample("reports", seen, obs=jnp.asarray(total))

        start = self.start(place)
        if cells is not None:
            notes = totals.approximation_notes(n, noise_sd, values)
        else:
            low, width = number_units(question)
            half = width / 2
            notes = two_sums_notes({"": of_two_sums(values, n, noise_sd, low + half, half)} if n else {})
        data, own = {"n": n, "total": values}, lambda draws: self.own(draws, place.units)
        checks = (notes_of(partial(self._too_narrow, place, mechanism.name)),)

        def derived(sites: Draws) -> dict[str, Any]:
            return {"implied": self.implied(question, sites)}

        return Model(program, data, start, own, notes, checks, derived)

    def _too_narrow(self, place: Place, noise: str, draws: Draws) -> tuple[str, ...]:
        """Return a note if the posterior has laws too narrow for quadrature; closed forms need none."""
        base = clipped(self.at(draws), *place.bounds)
        closed = isinstance(base, ClosedForm) and noise != "gaussian"
        if closed or not isinstance(base, ClippedContinuous):
            return ()
        narrow = float(np.mean(np.sqrt(base.base.variance) < NARROWEST * place.stretch))
        if narrow <= FEW_DRAWS:
            return ()
        return (
            f"{100 * narrow:.0f} % of the posterior are laws so narrow compared with the bounds (sd below "
            "1/512 of their distance) that the likelihood is accurate only to a few thousandths: with very "
            "many reports intervals are wrong. Ask again with narrower bounds, or use the exact model normal",
        )

    def _beyond(self, place: Place, draws: Draws) -> float:
        """Return the share of people that the law puts beyond the bounds; none of whole numbers."""
        if self.law.whole:
            return 0.0
        # In double precision, like the draws: JAX would reuse programs compiled for single precision.
        with jax.enable_x64(True):
            base = clipped(self.at(draws), *place.bounds)
            low, high = base.log_atoms()
        return float(np.mean(np.exp(low) + np.exp(high)))

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        units, own = self.units(question), truth.parameters
        sites = {name: (own[name] - zero) / unit for name, (zero, unit) in self._scales(units).items()}
        answers = units.zero + units.unit * self.law.sample(random, n, **sites)
        return with_refusals(question, truth, answers, random)


def add_number_model(name: str, law: NumberLaw) -> None:
    """Add a model to the registry.

    Args:
        name: Its name in studies, which never changes meaning.
        law: The law of a number.

    Raises:
        ValueError: Another model has the name.
    """
    add_model(NumberModel(name, law))


for _name, _law in NUMBER_LAWS.items():
    add_number_model(_name, _law)
