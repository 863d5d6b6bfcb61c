"""The models that studies name, by name, and what reports make of them."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from inference.models.base import Model
from inference.models.family import MODELS, Family, Sets, family_of, priors_of, register
from ldp_client import Mechanism, mechanism_for
from ldp_client.documents.errors import InputError
from schemas import Question
from summaries import QuestionSummary

__all__ = ["MODELS", "Family", "family_of", "model_for", "priors_of", "register"]

# A model is a file of this folder that registers it.
for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")


def model_for(
    question: Question,
    summary: QuestionSummary,
    rows: Sets | None = None,
    mechanism: Mechanism | None = None,
) -> Model:
    """Condition the model that a study's question names on its summary.

    Args:
        question: A question about people; tables of data holders have `holder_regression`.
        summary: Of the question's reports, or of a secure sum.
        rows: The packed sets of choices that the same reports stand for, where they are few enough
            (`SmallSamples`): then the likelihood is exact though the summary would lose something.
        mechanism: The question's, where it is built already, as `mechanisms_of(study)` has it.

    Raises:
        InputError: The model has no likelihood for the mechanism's reports, or too many choices.
    """
    family, name = family_of(question), question.mechanism.name
    mechanism = mechanism or mechanism_for(question)
    if question.route is not None:
        return family.condition_on_total(question, mechanism, summary)
    if name not in family.mechanisms():
        known = ", ".join(family.mechanisms())
        raise InputError(
            f"{question.id}: {family.name!r} has no likelihood for {name!r}, only for {known}",
            code="fit.no_likelihood",
        )
    return family.condition(question, mechanism, summary, rows)
