"""Bernoulli and multinomial models of one choice, under any mechanism for choices."""

from __future__ import annotations

from typing import cast

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray

from inference import priors
from inference.models.base import Draws, Model
from inference.models.choice_forms import Form, form_of
from inference.models.prior_weight import answers_worth, prior_note
from inference.ordered_simplex import breaking_order
from ldp_client import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from schemas import Question
from summaries import QuestionSummary


def bernoulli(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """p is the share of yes; the reported yes are binomial."""
    choice = cast(ChoiceMechanism, mechanism)
    p, q = float(choice.p), float(choice.q)
    yes = int(summary.values[1])

    def program(n: int, yes: int) -> None:
        share = priors.bernoulli(question)
        numpyro.sample("reports", dist.Binomial(n, q + (p - q) * share), obs=yes)

    start = float(np.clip((yes / max(summary.n, 1) - q) / (p - q), 0.01, 0.99))
    return Model(program, {"n": summary.n, "yes": yes}, {"p": start}, lambda draws: {"p": draws["p"]})


def multinomial(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """p[choice] are the shares of the choices."""
    return multinomial_of(question, mechanism, form_of(mechanism, summary), summary.n)


def multinomial_of(question: Question, mechanism: Mechanism, form: Form, n: int) -> Model:
    """The shares of the choices, from reports in a given form."""

    def program(order: Array, **data: Array) -> None:
        law, values = form.law(priors.multinomial(question, order), data)
        numpyro.sample("reports", law, obs=jnp.asarray(values))

    def parameters(draws: Draws) -> dict[str, NDArray[np.float64]]:
        return {f"p[{label}]": draws["p"][..., index] for index, label in enumerate(question.choices)}

    start = _inside(form.estimate)
    data = {"order": breaking_order(start), **form.data}
    notes = (*form.notes, *prior_note(question, answers_worth(mechanism, n)))
    return Model(program, data, {"p": start}, parameters, notes)


def _inside(estimate: NDArray[np.float64]) -> NDArray[np.float64]:
    """Unbiased shares, moved inside the simplex for a start."""
    start = np.maximum(estimate, 0.1 / len(estimate))
    return np.asarray(start / start.sum())
