"""Bernoulli and multinomial models of one choice, under any mechanism for choices."""

from __future__ import annotations

from typing import cast

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from inference import priors
from inference.models.base import Model
from inference.models.choice_forms import Form, form_of
from inference.models.prior_weight import answers_worth, prior_note
from inference.models.shares import Shares
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

    answers = answers_worth(mechanism, n)
    shares = Shares(question, form.estimate, answers)

    def program(order: Array, **data: Array) -> None:
        law, values = form.law(shares.draw(order), data)
        numpyro.sample("reports", law, obs=jnp.asarray(values))

    notes = (*form.notes, *prior_note(question, answers))
    data = {"order": shares.order, **form.data}
    return Model(
        program, data, shares.initial, shares.parameters, notes, form.replicates, redrawn=shares.redrawn
    )
