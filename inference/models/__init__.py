"""The built-in models, by the names that studies use."""

from __future__ import annotations

from collections.abc import Callable

from inference.models import choice, number, regression, summed
from inference.models.base import Model
from ldp_client import Mechanism, mechanism_for
from schemas import Question
from summaries import QuestionSummary

Build = Callable[[Question, Mechanism, QuestionSummary], Model]

MODELS: dict[str, Build] = {
    "normal": number.normal,
    "exponential": number.exponential,
    "bernoulli": choice.bernoulli,
    "multinomial": choice.multinomial,
    "linear_regression": regression.linear,
    "logistic_regression": regression.logistic,
}

# A secure sum's total is another statistic than reports; its records' are the same, with less noise.
SUMMED: dict[str, Build] = {
    "normal": summed.normal,
    "exponential": summed.exponential,
    "bernoulli": summed.bernoulli,
    "multinomial": summed.multinomial,
}


def model_for(question: Question, summary: QuestionSummary) -> Model:
    """The model that a study's question names, conditioned on its summary."""
    builders = MODELS if question.route is None else MODELS | SUMMED
    return builders[question.model.name](question, mechanism_for(question), summary)
