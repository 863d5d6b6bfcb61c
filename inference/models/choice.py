"""Bernoulli and multinomial models of one choice, under randomized response or unary encoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpy.typing import NDArray
from numpyro.distributions import Distribution

from inference import priors
from inference.likelihoods import RandomizedResponseCounts, UnaryEncodingColumnSums, UnaryEncodingPatterns
from inference.models.base import Draws, Model
from ldp_client import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from schemas import Question
from summaries import QuestionSummary
from summaries.reductions.choice import keeps_patterns, pattern_bits

# A binomial count is near enough to normal when its variance is at least this.
FEWEST_VARIANCE = 10.0


def bernoulli(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """p is the share of yes; the reported yes are binomial."""
    p, q = _probabilities(mechanism)
    yes = int(summary.values[1])

    def program(n: int, yes: int) -> None:
        share = priors.bernoulli(question)
        numpyro.sample("reports", dist.Binomial(n, q + (p - q) * share), obs=yes)

    start = float(_unbiased(np.asarray(yes), summary.n, p, q))
    return Model(program, {"n": summary.n, "yes": yes}, {"p": start}, lambda draws: {"p": draws["p"]})


def multinomial(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """p[choice] are the shares of the choices."""
    p, q = _probabilities(mechanism)
    law_of = _law(mechanism)

    def program(n: int, counts: Array) -> None:
        law = law_of(priors.multinomial(question), p, q, n)
        numpyro.sample("reports", law, obs=jnp.asarray(counts))

    start = _unbiased(choice_counts(mechanism, summary), summary.n, p, q)

    def parameters(draws: Draws) -> dict[str, NDArray[np.float64]]:
        return {f"p[{label}]": draws["p"][..., index] for index, label in enumerate(question.choices)}

    data = {"n": summary.n, "counts": summary.values}
    return Model(program, data, {"p": start / start.sum()}, parameters, _approximation(mechanism, summary.n))


def _approximation(mechanism: Mechanism, n: int) -> tuple[str, ...]:
    """A warning where column sums are too few to be taken as normal."""
    _, q = _probabilities(mechanism)
    exact = mechanism.name == "randomized_response" or keeps_patterns(
        cast(ChoiceMechanism, mechanism).choices
    )
    if exact or n * q * (1 - q) >= FEWEST_VARIANCE:
        return ()
    return (
        "the reports are too few for so many choices at this epsilon: their sums are taken as normal, which "
        "they are not yet, and the intervals are approximate",
    )


def choice_counts(mechanism: Mechanism, summary: QuestionSummary) -> NDArray[np.float64]:
    """How many reports support each choice, shape (k,)."""
    choices = cast(ChoiceMechanism, mechanism).choices
    if mechanism.name == "randomized_response" or not keeps_patterns(choices):
        return summary.values.astype(np.float64)
    return summary.values @ pattern_bits(choices)


def _probabilities(mechanism: Mechanism) -> tuple[float, float]:
    choice = cast(ChoiceMechanism, mechanism)
    return float(choice.p), float(choice.q)


def _unbiased(counts: NDArray[np.float64], n: int, p: float, q: float) -> NDArray[np.float64]:
    """(c/n − q)/(p − q), kept inside the simplex for a start."""
    raw = (counts / max(n, 1) - q) / (p - q)
    return np.asarray(np.clip(raw, 0.01, 0.99))


def _law(mechanism: Mechanism) -> Callable[[Array, float, float, int], Distribution]:
    """The law of a summary's values given (shares, p, q, n)."""
    if mechanism.name == "randomized_response":
        return RandomizedResponseCounts
    choices = cast(ChoiceMechanism, mechanism).choices
    if not keeps_patterns(choices):
        return UnaryEncodingColumnSums
    patterns = pattern_bits(choices)
    return lambda shares, p, q, n: UnaryEncodingPatterns(shares, p, q, patterns, n)
