"""A law of one number: its parameters and their units, its default priors, and a fit's starting values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from numpyro.distributions import Distribution

from inference.models import number
from inference.models.base import Draws, Model, Truth
from inference.models.family import Family, Sets, draw
from inference.models.number import Ridge, Start
from inference.models.refusals import with_refusals
from inference.results.answer_law import Implied
from inference.units import Units, number_units
from ldp_client import Mechanism
from schemas import Question
from summaries import QuestionSummary

Parameters = dict[str, NDArray[np.float64]]


class Measure(NamedTuple):
    """The map from a site in the law's units to its parameter in own units.

    prior: zero and unit of the site in own units, for `priors.laws.rescaled`. own: (site, units) -> value in
    own units.
    """

    prior: Callable[[Units], tuple[float, float]]
    own: Callable[[Any, Units], Any]


PLAIN = Measure(lambda _units: (0.0, 1.0), lambda site, _units: site)
PLACE = Measure(lambda units: (units.zero, units.unit), lambda site, units: units.zero + units.unit * site)
LENGTH = Measure(lambda units: (0.0, units.unit), lambda site, units: units.unit * site)
RATE = Measure(lambda units: (0.0, 1 / units.unit), lambda site, units: site / units.unit)
LOGARITHM = Measure(
    lambda units: (math.log(units.unit), 1.0), lambda site, units: site + math.log(units.unit)
)


def measured(**measures: Measure) -> Mapping[str, Measure]:
    """Return a read-only mapping of a law's parameters to their measures."""
    return MappingProxyType(measures)


class NumberLaw(Family):
    """A law of one number, which devices clip to the bounds.

    Attributes:
        measures: {parameter: measure}, in the order of drawing and reporting.
        whole: Whether it is a law on the whole numbers, which computes in own units.
        positive: Whether it has no mass below zero. It then computes from 0, in units of the bounds'
            distance. Any other law has the bounds at 0 and 1.
        ridge: The sites of location and sd, if it has them: answers at a bound give a narrow wedge of both.
    """

    measures: Mapping[str, Measure]
    whole = False
    positive = True
    ridge: Ridge | None = None
    reads = ("laplace", "gaussian")

    def law(self, *args: Any, **sites: Any) -> Distribution:
        """Return the NumPyro distribution before clipping, from the sites in the law's units."""
        raise NotImplementedError

    def start(self, start: Start) -> dict[str, object]:
        """Return a value of each site by moments."""
        raise NotImplementedError

    def sample(self, question: Question, truth: Mapping[str, float], n: int, random: Generator) -> Any:
        """Draw n numbers, (n,), from parameters in own units."""
        raise NotImplementedError

    def units(self, question: Question) -> Units:
        """Return the units in which the law computes: own = zero + unit × scaled."""
        if self.whole:
            return Units(0.0, 1.0)
        zero, unit = number_units(question)
        return Units(0.0 if self.positive else zero, unit)

    def draw(self, question: Question) -> Distribution:
        """Draw the sites from their priors, inside a NumPyro program; return the law before clipping."""
        units = self.units(question)
        return self.law(
            **{name: draw(question, name, *measure.prior(units)) for name, measure in self.measures.items()}
        )

    def own(self, draws: Draws, units: Units) -> Parameters:
        """Turn draws of the sites into parameters in the question's own units."""
        return {name: measure.own(draws[name], units) for name, measure in self.measures.items()}

    def implied(self, question: Question, draws: Draws) -> Implied:
        """Compute from draws of the sites what they imply for answers between the bounds."""
        units = self.units(question)
        low, width = number_units(question)

        def of(asked: Callable[[Distribution], Any]) -> NDArray[np.float64]:
            with jax.enable_x64(True):
                law = self.law(**{name: jnp.asarray(draws[name]) for name in self.measures})
                return np.asarray(asked(law), np.float64)

        return Implied(
            low,
            low + width,
            lambda value: of(lambda law: 1 - self._below(law, (value - units.zero) / units.unit)),
            lambda: of(lambda law: units.zero + units.unit * law.mean),
        )

    def _below(self, law: Distribution, value: float) -> Any:
        """Return the share at or below a value, in the law's units."""
        if not self.whole:
            return law.cdf(value)
        # Some laws on the whole numbers have no cdf.
        places = jnp.arange(math.floor(value) + 1).reshape(-1, *(1 for _ in law.batch_shape))
        return jax.lax.map(lambda place: jnp.exp(law.log_prob(place)), places).sum(axis=0)

    def condition(
        self, question: Question, mechanism: Mechanism, summary: QuestionSummary, sets: Sets | None = None
    ) -> Model:
        del sets
        return number.of_reports(self, question, mechanism, summary)

    def condition_on_total(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        return number.of_total(self, question, mechanism, summary)

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        return with_refusals(question, truth, self.sample(question, truth.parameters, n, random), random)
