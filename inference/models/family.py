"""What a model is that studies name: one object, as a mechanism is, and the registry of all of them.

To add one: its file in this folder and its line in ldp_client/documents/catalogue.py
(docs/adding-a-model.md). Every file of this folder is loaded, and those that define a model register it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpyro
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.models.base import Model, Truth
from inference.priors.laws import law, rescaled, state
from inference.results.intervals import REFUSED
from ldp_client import Mechanism
from ldp_client.documents.errors import InputError
from schemas import Question, Rational
from summaries import QuestionSummary

# {parameter: Stated}, and {parameter: {feature id: Stated}} for what each feature has.
Priors = Mapping[str, Any]
Answers = Sequence[Any]
Sets = NDArray[np.uint8]


class Family:
    """A parametric model of answers: its default priors, its likelihoods and its simulation.

    Attributes:
        name: As the catalogue and studies have it; it never changes meaning.
        reads: What `mechanisms` gives, where that is fixed.
    """

    name: str
    reads: tuple[str, ...] = ()

    def mechanisms(self) -> tuple[str, ...]:
        """Name the mechanisms whose reports it has a likelihood for."""
        return self.reads

    def priors(self, question: Question) -> Priors:
        """Give the default prior of each parameter that the catalogue names, in the question's own units."""
        raise NotImplementedError

    def condition(
        self, question: Question, mechanism: Mechanism, summary: QuestionSummary, sets: Sets | None = None
    ) -> Model:
        """Condition the model on a summary of reports.

        Args:
            question: A question that names this model.
            mechanism: The question's mechanism.
            summary: Of the reports.
            sets: The packed sets of choices that the same reports stand for, where they are few enough that
                the likelihood may take them one by one.

        Raises:
            InputError: The reports or the question's bounds have no likelihood.
        """
        raise NotImplementedError

    def condition_on_total(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        """Condition the model on a secure sum's total: by default as on reports, of less noise."""
        return self.condition(question, mechanism, summary)

    def condition_on_answers(self, question: Question, answers: Answers) -> Model:
        """Condition the model on raw answers, one a person: what an analyst would get without privacy."""
        del answers
        raise InputError(
            f"{question.id}: the model {self.name!r} takes no raw answers", code="fit.model_needs_noise"
        )

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        """Draw the answers of n people, in the form that `quantise_many` takes."""
        del truth, n, random
        raise InputError(
            f"{question.id}: answers of model {self.name!r} cannot be simulated", code="fit.not_simulated"
        )

    def settable(self, parameters: Mapping[str, float]) -> Mapping[str, float]:
        """The parameters of a simulated truth that a planner may set."""
        return parameters

    def completed(self, drawn: Mapping[str, float], given: Mapping[str, float]) -> dict[str, float]:
        """Lay given parameters of a truth over drawn ones. Raises InputError where they do not agree."""
        return {**drawn, **given}


# Of the share of people who prefer not to say, where a question offers it.
EVEN = state("beta", a=1.0, b=1.0)
MODELS: dict[str, Family] = {}
Kind = TypeVar("Kind", bound=type[Family])


def register(kind: Kind) -> Kind:
    """Add a model to the registry: a class decorator.

    Raises:
        ValueError: Another model has the name.
    """
    if kind.name in MODELS:
        raise ValueError(f"there is a model {kind.name!r} already")
    MODELS[kind.name] = kind()
    return kind


def family_of(question: Question) -> Family:
    """Look up the model that a question names."""
    return MODELS[question.model.name]


def priors_of(question: Question) -> Priors:
    """Give every prior of a question's model: the stated ones, and the defaults of the others."""
    found = dict(family_of(question).priors(question))
    if question.refusal:
        found[REFUSED] = EVEN
    for name, stated in question.model.prior.items():
        found[name] = {**found[name], **_floats(stated)} if _is_of_features(stated) else _floats(stated)
    return found


def draw(question: Question, name: str, zero: float = 0.0, unit: float = 1.0) -> Array:
    """Draw the site `name` from its prior, inside a NumPyro program: the parameter is zero + unit × site."""
    return numpyro.sample(name, law(rescaled(priors_of(question)[name], zero, unit)))


def _is_of_features(stated: Mapping[str, Any]) -> bool:
    return not isinstance(stated.get("distribution"), str)


def _floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _floats(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [float(entry) for entry in value]
    return float(value) if isinstance(value, Rational) else value
