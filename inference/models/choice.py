"""Bernoulli and multinomial models of one choice, under randomized response or unary encoding."""

from __future__ import annotations

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
from inference.reductions import keeps_patterns, pattern_bits
from inference.summaries import QuestionSummary
from ldp_client import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from schemas import Question


def bernoulli(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """p is the share of yes; the reported yes are binomial."""
    del question
    p, q = _probabilities(mechanism)
    yes = summary.values[1]

    def program() -> None:
        share = priors.bernoulli()
        numpyro.sample("reports", dist.Binomial(summary.n, q + (p - q) * share), obs=yes)

    start = float(_unbiased(yes, summary.n, p, q))
    return Model(program, {"p": start}, lambda draws: {"p": draws["p"]})


def multinomial(question: Question, mechanism: Mechanism, summary: QuestionSummary) -> Model:
    """p[choice] are the shares of the choices."""
    p, q = _probabilities(mechanism)
    choices = len(question.choices)
    likelihood = _randomized if mechanism.name == "randomized_response" else _unary

    def program() -> None:
        likelihood(priors.multinomial(choices), p, q, summary)

    counts = choice_counts(mechanism, summary)
    start = _unbiased(counts, summary.n, p, q)

    def parameters(draws: Draws) -> dict[str, NDArray[np.float64]]:
        return {f"p[{label}]": draws["p"][..., index] for index, label in enumerate(question.choices)}

    return Model(program, {"p": start / start.sum()}, parameters)


def choice_counts(mechanism: Mechanism, summary: QuestionSummary) -> NDArray[np.float64]:
    """How many reports support each choice, shape (k,)."""
    choices = cast(ChoiceMechanism, mechanism).choices
    if mechanism.name == "randomized_response" or not keeps_patterns(choices):
        return summary.values.astype(np.float64)
    return summary.values @ pattern_bits(choices, np.arange(len(summary.values)))


def _probabilities(mechanism: Mechanism) -> tuple[float, float]:
    choice = cast(ChoiceMechanism, mechanism)
    return float(choice.p), float(choice.q)


def _unbiased(counts: NDArray[np.float64], n: int, p: float, q: float) -> NDArray[np.float64]:
    """(c/n − q)/(p − q), kept inside the simplex for a start."""
    raw = (counts / max(n, 1) - q) / (p - q)
    return np.asarray(np.clip(raw, 0.01, 0.99))


def _randomized(shares: Array, p: float, q: float, summary: QuestionSummary) -> None:
    law = RandomizedResponseCounts(shares, p, q, summary.n)
    numpyro.sample("reports", law, obs=jnp.asarray(summary.values))


def _unary(shares: Array, p: float, q: float, summary: QuestionSummary) -> None:
    numpyro.sample(
        "reports", _unary_law(shares, p, q, summary), obs=jnp.asarray(_unary_data(shares.shape[0], summary))
    )


def _unary_law(shares: Array, p: float, q: float, summary: QuestionSummary) -> Distribution:
    choices = shares.shape[0]
    if not keeps_patterns(choices):
        return UnaryEncodingColumnSums(shares, p, q, summary.n)
    return UnaryEncodingPatterns(
        shares, p, q, pattern_bits(choices, np.flatnonzero(summary.values)), summary.n
    )


def _unary_data(choices: int, summary: QuestionSummary) -> NDArray[np.int64]:
    return summary.values[summary.values > 0] if keeps_patterns(choices) else summary.values
