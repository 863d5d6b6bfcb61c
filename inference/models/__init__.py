"""The models that studies name, and how to condition them on reports."""

from importlib import import_module
from pkgutil import iter_modules

from inference.models.base import Model
from inference.models.family import MODELS, Family, family_of, priors_of, register
from inference.models.refusals import with_refused
from ldp_client import Mechanism, mechanism_for
from ldp_client.documents.errors import InputError
from schemas import Question
from summaries import QuestionSummary

__all__ = ["MODELS", "Family", "family_of", "model_for", "priors_of", "register"]

# Each file of this folder registers its models.
for _file in iter_modules(__path__):
    import_module(f"{__name__}.{_file.name}")


def model_for(question: Question, summary: QuestionSummary, mechanism: Mechanism | None = None) -> Model:
    """Condition the model that a study's question names on its summary.

    Args:
        question: A question about people; tables of data holders use `holder_regression`.
        summary: Summary of the question's reports, or of a secure sum. Reports of a choice in it
            (`SmallSamples`) make the likelihood exact even if their counts would lose information.
        mechanism: The question's mechanism, if already built, for example by `mechanisms_of(study)`.

    Raises:
        InputError: The model has no likelihood for the mechanism's reports, or too many choices.
    """
    family, name = family_of(question), question.mechanism.name
    mechanism = mechanism or mechanism_for(question)
    if question.protocol is not None:
        return family.condition_on_total(question, mechanism, summary)
    if name not in family.reads:
        known = ", ".join(family.reads)
        raise InputError(
            f"{question.id}: {family.name!r} has no likelihood for {name!r}, only for {known}",
            code="fit.no_likelihood",
        )
    return with_refused(question, family.condition(question, mechanism, summary))
