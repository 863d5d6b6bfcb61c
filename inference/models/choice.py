"""Bernoulli and multinomial models of one choice, under any mechanism for choices."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray

from inference.models.base import Draws, Model, Sampling, Summaries, Truth
from inference.models.choice_forms import form_of, unbiased_shares
from inference.models.family import Family, draw, register
from inference.models.refusals import of_all, of_answers, with_refusals
from inference.models.shares import (
    Shares,
    noiseless_answers,
    noiseless_answers_of_total,
    prior_note,
    pulled,
    scale_draws,
)
from inference.models.totals import approximation_notes, noisy_counts, total_of
from ldp_client import Mechanism
from ldp_client.documents.catalogue import MECHANISMS
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.choice import ChoiceMechanism
from schemas import Question
from summaries import QuestionSummary

# A posterior draws every share, and its page shows them all.
MOST_SHARES = 10_000


def _for_choices(ask: str) -> tuple[str, ...]:
    """Return all mechanisms for this kind of question except the secure sum, whose law is not of supports."""
    return tuple(name for name in MECHANISMS if ask in MECHANISMS[name].asks and name != "summed_gaussian")


@register
class Bernoulli(Family):
    """p is the share of yes."""

    name, reads = "bernoulli", _for_choices("yes_no")

    def condition(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        form = form_of(mechanism, summary)

        def program(**data: Array) -> None:
            share = draw(question, "p")
            law, values = form.law(of_all(question, jnp.stack([1 - share, share])), data)
            numpyro.sample("reports", law, obs=jnp.asarray(values))

        return Model(
            program,
            form.data,
            {"p": 0.5},
            lambda draws: {"p": draws["p"]},
            form.notes,
            summaries=Summaries(replicates=form.replicates),
        )

    def condition_on_total(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        n, noise_sd, values = total_of(mechanism, summary)

        def program(n: int, total: Array) -> None:
            share = draw(question, "p")
            spread = jnp.sqrt(n * share * (1 - share) + noise_sd**2)
            numpyro.sample("reports", dist.Normal(n * share, spread), obs=jnp.asarray(total)[0])

        return Model(program, {"n": n, "total": values}, {"p": 0.5}, lambda draws: {"p": draws["p"]})

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        return with_refusals(question, truth, random.random(n) < truth.parameters["p"], random)


@register
class Multinomial(Family):
    """p[choice] are the shares of the choices."""

    name, reads = "multinomial", _for_choices("choice")

    def condition(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        if len(question.choices) > MOST_SHARES:
            raise InputError(
                f"{question.id}: {self.name!r} draws at most {MOST_SHARES} shares", code="fit.too_many_shares"
            )
        form = form_of(mechanism, summary)
        answers = noiseless_answers(mechanism, summary.n)
        estimate = unbiased_shares(cast(ChoiceMechanism, mechanism), summary)
        shares = Shares(question, of_answers(question, estimate), answers)

        def program(order: Array, **data: Array) -> None:
            law, values = form.law(of_all(question, shares.draw(order)), data)
            numpyro.sample("reports", law, obs=jnp.asarray(values))

        model = _of_shares(question, shares, answers, program, form.data, form.notes)
        return replace(model, summaries=Summaries(replicates=form.replicates))

    def condition_on_total(self, question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
        n, noise_sd, values = total_of(mechanism, summary)
        answers = noiseless_answers_of_total(question, n, noise_sd)
        shares = Shares(question, values / max(n, 1), answers)

        def program(n: int, total: Array, order: Array) -> None:
            law = noisy_counts(shares.draw(order), n, noise_sd)
            numpyro.sample("reports", law, obs=jnp.asarray(total))

        data, notes = {"n": n, "total": values}, approximation_notes(n, noise_sd, values)
        return _of_shares(question, shares, answers, program, data, notes)

    def simulate(self, question: Question, truth: Truth, n: int, random: Generator) -> Any:
        shares = np.asarray([truth.parameters[f"p[{label}]"] for label in question.choices])
        index = np.repeat(np.arange(len(shares)), random.multinomial(n, shares / shares.sum()))
        return with_refusals(question, truth, np.asarray(question.choices)[index], random)


def _of_shares(
    question: Question,
    shares: Shares,
    answers: float,
    program: Callable[..., None],
    data: Mapping[str, object],
    notes: tuple[str, ...],
) -> Model:
    """Return a model of shares; answers: the noiseless answers that its data are worth."""

    def parameters(draws: Draws) -> dict[str, NDArray[np.float64]]:
        return {**shares.parameters(draws), **scale_draws(question, draws)}

    return Model(
        program,
        {"order": shares.order, **data},
        shares.initial,
        parameters,
        (*notes, *prior_note(question, answers)),
        (partial(pulled, question, answers),),
        sampling=Sampling(redrawn=shares.redrawn),
    )
