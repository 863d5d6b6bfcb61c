"""The built-in models, by the names that studies use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from inference.models import choice, marginals, number, records, regression, summed
from inference.models.base import Model
from inference.models.choice_forms import rows_form
from inference.models.number_laws import LAWS
from ldp_client import Mechanism, mechanism_for
from ldp_client.documents.errors import InputError
from schemas import Question
from summaries import QuestionSummary

Build = Callable[[Question, Mechanism, QuestionSummary], Model]

MODELS: dict[str, Build] = {
    **dict.fromkeys(LAWS, number.number_model),
    "bernoulli": choice.bernoulli,
    "multinomial": choice.multinomial,
    "linear_regression": regression.linear,
    "logistic_regression": regression.logistic,
    "marginals": marginals.marginals,
}
# Whose reports each model has a likelihood for.
READS = {
    **dict.fromkeys(LAWS, ("laplace", "gaussian")),
    "bernoulli": ("randomized_response", "memoized"),
    "multinomial": ("randomized_response", "oue", "sue", "subset_selection", "olh", "hadamard", "memoized"),
    "linear_regression": ("gaussian_statistics", "gaussian_record"),
    "logistic_regression": ("gaussian_statistics", "gaussian_record"),
    "marginals": ("summed_gaussian",),
}
# Perturbed records are other reports than perturbed statistics of them.
FROM_RECORDS: dict[str, Build] = {
    "linear_regression": records.linear,
    "logistic_regression": records.logistic,
}
# A posterior draws every share, and its page shows each.
MOST_SHARES = 10_000

# A secure sum's total is another statistic than reports; its records' are the same, with less noise.
SUMMED: dict[str, Build] = {
    **dict.fromkeys(LAWS, summed.number),
    "bernoulli": summed.bernoulli,
    "multinomial": summed.multinomial,
}


def model_for(question: Question, summary: QuestionSummary, rows: NDArray[np.uint8] | None = None) -> Model:
    """The model that a study's question names, conditioned on its summary.

    rows: the packed sets of choices that the same reports stand for, where they are few enough
    (`SmallSamples`): then the likelihood is exact though the summary would lose something.

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
    built = mechanism_for(question)
    if mechanism == "gaussian_record":
        return FROM_RECORDS[model](question, built, summary)
    if rows is not None:
        return choice.multinomial_of(question, built, rows_form(built, rows), summary.n)
    return MODELS[model](question, built, summary)
