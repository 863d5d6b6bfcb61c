"""The interface of the models that studies name, and their registry. A model is one object, like a mechanism.

To add a model, add its file to this folder and its line to ldp_client/documents/catalogue.py
(docs/adding-a-model.md). Every file of this folder is loaded, and each model registers itself.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import numpyro
from jax import Array
from numpy.random import Generator

from inference.default_priors import DEFAULTS, with_stated
from inference.models.base import Model, Truth
from inference.priors.laws import law, rescaled
from ldp_client import Mechanism
from schemas import Question
from summaries import QuestionSummary

# {parameter: Stated}, and {parameter: {feature id: Stated}} for parameters that each feature has.
Priors = Mapping[str, Any]


class Family:
    """A parametric model of answers: its default priors, its likelihoods and its simulation.

    Attributes:
        name: Its name in the catalogue and in studies; it never changes meaning.
        reads: The names of the mechanisms for whose reports the model has a likelihood.
    """

    name: str
    reads: tuple[str, ...]

    def priors(self, question: Question) -> Priors:
        """Return the default prior of each parameter in the catalogue, in the question's own units."""
        return DEFAULTS[self.name](question)

    def condition(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        """Condition the model on a summary of reports.

        Args:
            question: A question that names this model.
            mechanism: The question's mechanism.
            summary: The reports' summary, with the reports of a choice themselves if they are few enough for
                a likelihood that takes them one by one.

        Raises:
            InputError: There is no likelihood for the reports or the question's bounds.
        """
        raise NotImplementedError

    def condition_on_total(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        """Condition the model on a secure sum's total; by default as on reports with less noise."""
        return self.condition(question, mechanism, summary)

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        """Draw the answers of n people, in the form that `quantise_many` takes."""
        raise NotImplementedError


MODELS: dict[str, Family] = {}
Kind = TypeVar("Kind", bound=type[Family])


def add_model(model: Family) -> None:
    """Add a model to the registry. Raises ValueError if another model has the name."""
    if model.name in MODELS:
        raise ValueError(f"there is a model {model.name!r} already")
    MODELS[model.name] = model


def register(kind: Kind) -> Kind:
    """Add a model to the registry: a class decorator."""
    add_model(kind())
    return kind


def family_of(question: Question) -> Family:
    """Look up the model that a question names."""
    return MODELS[question.model.name]


def priors_of(question: Question) -> Priors:
    """Return every prior of a question's model: the stated priors, and defaults for the rest."""
    return with_stated(question, family_of(question).priors(question))


def draw(question: Question, name: str, zero: float = 0.0, unit: float = 1.0) -> Array:
    """Draw the site `name` from its prior, inside a NumPyro program: the parameter is zero + unit × site."""
    return numpyro.sample(name, law(rescaled(priors_of(question)[name], zero, unit)))
