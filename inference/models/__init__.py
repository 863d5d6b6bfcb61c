"""The built-in models, by the names that studies use."""

from __future__ import annotations

from collections.abc import Callable

from inference.models import choice, number, regression, summed
from inference.models.base import Model
from inference.models.number_laws import LAWS
from ldp_client import Mechanism, mechanism_for
from schemas import Question
from schemas.errors import InputError
from summaries import QuestionSummary

Build = Callable[[Question, Mechanism, QuestionSummary], Model]

MODELS: dict[str, Build] = {
    **dict.fromkeys(LAWS, number.number_model),
    "bernoulli": choice.bernoulli,
    "multinomial": choice.multinomial,
    "linear_regression": regression.linear,
    "logistic_regression": regression.logistic,
}
# Whose reports each model has a likelihood for.
READS = {
    **dict.fromkeys(LAWS, ("laplace", "gaussian")),
    "bernoulli": ("randomized_response",),
    "multinomial": ("randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard"),
    "linear_regression": ("gaussian_statistics",),
    "logistic_regression": ("gaussian_statistics",),
}
# A posterior draws every share, and its page shows each.
MOST_SHARES = 10_000

# A secure sum's total is another statistic than reports; its records' are the same, with less noise.
SUMMED: dict[str, Build] = {
    **dict.fromkeys(LAWS, summed.number),
    "bernoulli": summed.bernoulli,
    "multinomial": summed.multinomial,
}


def model_for(question: Question, summary: QuestionSummary) -> Model:
    """The model that a study's question names, conditioned on its summary.

    Raises InputError where the model has no likelihood for the mechanism's reports, or too many choices.
    """
    mechanism, model = question.mechanism.name, question.model.name
    if question.route is not None and model in SUMMED:
        return SUMMED[model](question, mechanism_for(question), summary)
    if question.route is None and mechanism not in READS[model]:
        known = ", ".join(READS[model])
        raise InputError(f"{question.id}: {model!r} has no likelihood for {mechanism!r}, only for {known}")
    if len(question.choices) > MOST_SHARES:
        raise InputError(f"{question.id}: {model!r} draws at most {MOST_SHARES} shares")
    return MODELS[model](question, mechanism_for(question), summary)
