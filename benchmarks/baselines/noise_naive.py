"""Posteriors that take noisy reports for clean data: same priors, no noise in the likelihood.

What an analyst gets who corrects for bias at most. Intervals are far too narrow; for numbers the spread is
too wide as well. For comparison only.
"""

from collections.abc import Callable
from typing import cast

import jax.numpy as jnp
import numpy as np
import numpyro
from jax import Array
from numpy.typing import NDArray

from inference.models import MODELS, family_of
from inference.models.base import Model
from inference.models.choice_forms import unbiased_shares
from inference.models.number import cell_edges
from inference.models.number_law import NumberModel
from inference.models.shares import Shares
from ldp_client import Mechanism, mechanism_for
from ldp_client.mechanisms.choice import ChoiceMechanism
from schemas import Question
from summaries import QuestionSummary

Matrix = NDArray[np.float64]
Build = Callable[[Question, Mechanism, QuestionSummary], Model]


def noise_naive_model_for(question: Question, summary: QuestionSummary) -> Model:
    """The question's model with its priors, its noisy summary taken for the truth.

    Raises KeyError for a model that has no naive form here.
    """
    return _NAIVE[question.model.name](question, mechanism_for(question), summary)


def _number(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """Every report in the middle of its cell; those beyond a bound count as half a cell inside."""
    family = cast(NumberModel, family_of(question))
    place = family.place(question)
    values = place.shift + place.stretch * _middles(mechanism)
    if family.law.positive:
        # Laws on the positive numbers.
        values = np.maximum(values, place.stretch * _middles(mechanism)[0])

    def program(values: Array, counts: Array) -> None:
        numpyro.factor("reports", jnp.sum(counts * family.draw(question).log_prob(values)))

    data = {"values": np.rint(values) if family.law.whole else values, "counts": summary.values}
    start = family.start(place)
    return Model(program, data, start, lambda draws: family.own(draws, place.units))


def _middles(mechanism: Mechanism) -> Matrix:
    """Where the reports of each cell and beyond are taken to be, bounds at 0 and 1; strictly inside."""
    edges, _ = cell_edges(mechanism)
    half = (edges[1] - edges[0]) / 2
    return np.clip(np.concatenate([edges[:1], edges[:-1] + half, edges[-1:]]), half, 1 - half)


def _multinomial(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    # n times the unbiased frequencies, negative ones as 0.
    frequencies = unbiased_shares(cast(ChoiceMechanism, mechanism), summary)
    counts = np.asarray(summary.n * np.maximum(frequencies, 0.0))
    shares = Shares(question, counts / max(counts.sum(), 1), float(counts.sum()))

    def program(counts: Array, order: Array) -> None:
        # Choices without answers add 0, even at share 0.
        numpyro.factor("reports", jnp.sum(counts * jnp.log(jnp.where(counts > 0, shares.draw(order), 1.0))))

    return Model(program, {"counts": counts, "order": shares.order}, shares.initial, shares.parameters)


_NAIVE: dict[str, Build] = {
    **{name: _number for name, family in MODELS.items() if isinstance(family, NumberModel)},
    "multinomial": _multinomial,
}
