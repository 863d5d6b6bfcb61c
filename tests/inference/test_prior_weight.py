"""The weight of the prior of shares, against simulated studies, and when it is noted."""

from __future__ import annotations

import numpy as np
import pytest

from inference.models import model_for
from inference.models.shares import noiseless_answers, prior_weight
from ldp_client import mechanism_for
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS
from tests.inference.sparse_shares import question_of

N = 500


def supports(mechanism, shares, random):
    """Unbiased estimates of the shares (studies, k) from N reports each: supports are binomial."""
    p, q = float(mechanism.p), float(mechanism.q)
    return (random.binomial(N, q + shares * (p - q)) / N - q) / (p - q)


@pytest.mark.parametrize(
    ("name", "epsilon", "concentration"),
    [("oue", "1", "1"), ("oue", "1", "3"), ("randomized_response", "4", "1")],
)
def test_prior_weight_matches_best_linear_estimate(name, epsilon, concentration) -> None:
    """Truths from the prior: regressed on their estimates, shares keep 1 − weight of them."""
    question, random = question_of(12, concentration, name, epsilon), np.random.default_rng(4)
    mechanism = mechanism_for(question)
    shares = random.dirichlet(np.full(12, float(concentration)), 4000)
    estimates = supports(mechanism, shares, random)
    assert estimates.mean() == pytest.approx(1 / 12, abs=0.002)
    kept = np.sum((shares - 1 / 12) * (estimates - 1 / 12)) / np.sum((estimates - 1 / 12) ** 2)
    assert 1 - prior_weight(question, noiseless_answers(mechanism, N)) == pytest.approx(kept, abs=0.02)


def notes(choices: int, n: int, concentration: str = "1") -> str:
    question = question_of(choices, concentration, "oue", "1")
    values = np.zeros(REDUCTIONS["oue"].size(mechanism_for(question)), dtype=np.int64)
    return " ".join(model_for(question, QuestionSummary(n, values)).notes)


def test_a_prior_that_weighs_more_than_a_twentieth_is_noted() -> None:
    heavy = notes(1024, 10**6)
    assert "weighs 79 %: it is worth as much as 1024 answers without noise, the reports as 264.8;" in heavy
    assert "weighs" not in notes(1024, 10**8)
    assert "weighs" in notes(20, 300)
    assert "weighs" not in notes(20, 300, "0.001")
    assert "weighs" not in notes(20, 10**6)
    assert "weighs 100 %" in notes(20, 0)
