"""Models of a secure sum's total: the central noise is in the likelihood."""

from __future__ import annotations

from typing import cast

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray

from inference import priors
from inference.likelihoods import clipped
from inference.likelihoods.numbers.total_moments import NoisyMoments, signed_moments
from inference.likelihoods.numbers.totals import NoisyCounts, cell_masses
from inference.models.base import Model
from inference.models.number import place_of
from inference.models.number_laws import LAWS
from inference.models.prior_weight import prior_note
from inference.models.shares import Shares
from ldp_client import Mechanism
from ldp_client.mechanisms.summed import SQUARE_BOTTOM, SQUARE_TOP, SummedMechanism
from ldp_client.mechanisms.summed_gaussian import SummedHistogram
from schemas import Question
from summaries import QuestionSummary

SQUARE_WEIGHT = SQUARE_TOP / SQUARE_BOTTOM
# A person's share of so few is not near enough to normal when the noise is small beside it.
FEWEST_EXPECTED = 10.0

Start = dict[str, object]


def number(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """x from the law that the question's model names, clipped to the bounds."""
    law, place = LAWS[question.model.name], place_of(question)
    n, noise_sd, values = total_of(mechanism, summary)
    cells = mechanism.size if isinstance(mechanism, SummedHistogram) else None

    def program(n: int, total: Array) -> None:
        base = clipped(law.draw(question), *place.bounds)
        if cells is None:
            seen: dist.Distribution = NoisyMoments(signed_moments(base), n, noise_sd, SQUARE_WEIGHT)
        else:
            seen = NoisyCounts(cell_masses(base, cells), n, noise_sd)
        numpyro.sample("reports", seen, obs=jnp.asarray(total))

    start = law.start(place.start(*_rough(mechanism, summary)))
    notes = () if cells is None else _approximation(n, noise_sd, values)
    return Model(program, {"n": n, "total": values}, start, lambda draws: law.own(draws, place.units), notes)


def bernoulli(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """p is the share of yes."""
    n, noise_sd, values = total_of(mechanism, summary)

    def program(n: int, total: Array) -> None:
        share = priors.bernoulli(question)
        spread = jnp.sqrt(n * share * (1 - share) + noise_sd**2)
        numpyro.sample("reports", dist.Normal(n * share, spread), obs=jnp.asarray(total)[0])

    start: Start = {"p": float(np.clip(values[0] / max(n, 1), 0.02, 0.98))}
    return Model(program, {"n": n, "total": values}, start, lambda draws: {"p": draws["p"]})


def multinomial(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """p[choice] are the shares of the choices."""
    n, noise_sd, values = total_of(mechanism, summary)

    answers = _answers_worth(question, n, noise_sd)
    shares = Shares(question, values / max(n, 1), answers)

    def program(n: int, total: Array, order: Array) -> None:
        law = NoisyCounts(shares.draw(order), n, noise_sd)
        numpyro.sample("reports", law, obs=jnp.asarray(total))

    notes = (*_approximation(n, noise_sd, values), *prior_note(question, answers))
    data = {"n": n, "total": values, "order": shares.order}
    return Model(program, data, shares.initial, shares.parameters, notes, redrawn=shares.redrawn)


def _answers_worth(question: Question, n: int, noise_sd: float) -> float:
    """As many answers without noise tell a share of 1/k as well as a noisy total of n does."""
    one = (1 - 1 / len(question.choices)) / len(question.choices)
    return n * one / (one + noise_sd**2 / max(n, 1))


def total_of(mechanism: Mechanism, summary: QuestionSummary) -> tuple[int, float, NDArray[np.float64]]:
    """n, the total noise's sd and the values, both in units of the statistic."""
    summed = cast(SummedMechanism, mechanism)
    return summary.n, summed.noise_sd * np.sqrt(max(summary.n, 1)), summary.values / summed.grid


def _rough(mechanism: Mechanism, summary: QuestionSummary) -> tuple[float, float]:
    """Rough mean and variance of the clipped answers, with the bounds at 0 and 1."""
    n, _, values = total_of(mechanism, summary)
    shares = values / max(n, 1)
    if isinstance(mechanism, SummedHistogram):
        middles = (np.arange(mechanism.size) + 0.5) / mechanism.size
        weight = np.clip(shares, 0, None)
        weight = weight / weight.sum() if weight.sum() > 0 else np.full(len(middles), 1 / len(middles))
        mean = float(weight @ middles)
        variance = float(weight @ middles**2) - mean**2
    else:
        mean = float(shares[0] + 1) / 2
        variance = float(shares[1] / SQUARE_WEIGHT - shares[0] ** 2) / 4
    return float(np.clip(mean, 0.02, 0.98)), float(np.clip(variance, 0.01, 0.25))


def _approximation(n: int, noise_sd: float, values: NDArray[np.float64]) -> tuple[str, ...]:
    """A warning where some counts are too small to be taken as normal and the noise does not hide that."""
    if noise_sd**2 >= FEWEST_EXPECTED or values.min() >= FEWEST_EXPECTED or n == 0:
        return ()
    return ("some choices have few people and little noise: their intervals are approximate",)
