"""The models of a number by a law: each law of `inference.laws` under Laplace or Gaussian noise, or a sum."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from numpyro.distributions import Distribution

from inference.laws import NUMBER_LAWS, NumberLaw
from inference.models import number
from inference.models.base import Draws, Model, Truth
from inference.models.family import Family, Priors, add_model, draw
from inference.models.refusals import with_refusals
from inference.results.answer_law import Implied
from inference.units import Units, number_units
from ldp_client import Mechanism
from schemas import Question
from summaries import QuestionSummary

Parameters = dict[str, NDArray[np.float64]]


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

    def condition(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        return number.of_reports(self, question, mechanism, summary)

    def condition_on_total(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        return number.of_total(self, question, mechanism, summary)

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
