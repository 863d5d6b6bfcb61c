"""How much a prior on shares weighs against the reports, and when a reader must know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from inference.models.family import priors_of
from ldp_client import Mechanism
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.hadamard import Hadamard
from schemas import Question

# A prior that decides more than this part of a share is told.
LIGHT = 0.05


def noiseless_answers(mechanism: Mechanism, n: int) -> float:
    """Count the noiseless answers that are as informative about a share of 1/k as n noisy reports.

    That is m(1 − m)/Var, m = 1/k, where Var is the variance of the unbiased estimate of a share: s(1 − s) /
    (n (p − q)²), s = q + m (p − q), for reports that support choices (Wang et al. 2017); 1 / (4 n B (p − q)²)
    for Hadamard response of B blocks.
    """
    choice = cast(ChoiceMechanism, mechanism)
    mean, gain = 1 / choice.choices, float(choice.p) - float(choice.q)
    if isinstance(choice, Hadamard):
        spread = 1 / (4 * choice.blocks)
    else:
        support = float(choice.q) + mean * gain
        spread = support * (1 - support)
    return n * gain**2 * mean * (1 - mean) / spread


def noiseless_answers_of_total(question: Question, n: int, noise_sd: float) -> float:
    """Count the noiseless answers that are as informative about a share of 1/k as a noisy total of n."""
    one = (1 - 1 / len(question.choices)) / len(question.choices)
    return n * one / (one + noise_sd**2 / max(n, 1))


def prior_weight(question: Question, answers: float) -> float:
    """The part of a posterior mean share that is the prior's: A/(A + answers).

    A Dirichlet of total concentration A is worth A answers (exactly where answers carry no noise; under
    noise it is the best linear estimate's weight).
    """
    total = _total_concentration(question)
    return total / (total + answers)


def _total_concentration(question: Question) -> float:
    k = len(question.choices)
    return float(np.broadcast_to(priors_of(question)["p"]["concentration"], (k,)).sum())


def prior_note(question: Question, answers: float) -> tuple[str, ...]:
    """A note where the prior's weight is above 5 %; answers: what the reports are worth without noise.

    None where the concentration is learnt from the reports too.
    """
    if isinstance(priors_of(question)["p"]["concentration"], Mapping):
        return ()
    weight = prior_weight(question, answers)
    if weight <= LIGHT:
        return ()
    return (
        f"the prior of the shares weighs {100 * weight:.0f} %: it is worth as much as "
        f"{_total_concentration(question):.4g} answers without noise, the reports as {answers:.4g}; it pulls "
        "large shares down, so where few choices are common state a smaller concentration, or a law for it",
    )
