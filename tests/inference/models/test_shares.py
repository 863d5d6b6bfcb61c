"""Shares: the weight of their prior, and the jumps with which chains visit shares that may be zero or not."""

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

from inference.models import model_for
from inference.models.shares import noiseless_answers, prior_weight
from inference.results.convergence import mixing
from inference.sampling.nuts import sample
from ldp_client import mechanism_for
from summaries import QuestionSummary
from summaries.reductions import REDUCTIONS
from tests import studies


def question_of(choices, concentration, mechanism="randomized_response", epsilon="2"):
    prior = {"p": {"distribution": "dirichlet", "concentration": concentration}}
    return studies.question_of(
        studies.CHOICE,
        choices={"count": choices},
        mechanism={"name": mechanism, "epsilon": epsilon},
        model={"name": "multinomial", "prior": prior},
    )


@pytest.mark.parametrize(
    ("name", "epsilon", "concentration"),
    [("oue", "1", "1"), ("oue", "1", "3"), ("randomized_response", "4", "1")],
)
def test_prior_weight_matches_best_linear_estimate(name, epsilon, concentration):
    """Truths from the prior: regressed on their unbiased estimates, shares keep 1 − weight of them."""
    question, n = question_of(12, concentration, name, epsilon), 500
    mechanism, random = mechanism_for(question), np.random.default_rng(4)
    shares = random.dirichlet(np.full(12, float(concentration)), 4000)
    p, q = float(mechanism.p), float(mechanism.q)
    estimates = (random.binomial(n, q + shares * (p - q)) / n - q) / (p - q)
    assert estimates.mean() == pytest.approx(1 / 12, abs=0.002)
    kept = np.sum((shares - 1 / 12) * (estimates - 1 / 12)) / np.sum((estimates - 1 / 12) ** 2)
    assert 1 - prior_weight(question, noiseless_answers(mechanism, n)) == pytest.approx(kept, abs=0.02)


@pytest.mark.parametrize(
    ("choices", "n", "concentration", "note"),
    [
        (1024, 10**6, "1", "weighs 79 %: it is worth as much as 1024 answers without noise, the reports as"),
        (1024, 10**8, "1", ""),
        (20, 300, "1", "weighs"),
        (20, 300, "0.001", ""),
        (20, 0, "1", "weighs 100 %"),
    ],
)
def test_a_prior_that_weighs_more_than_a_twentieth_is_noted(choices, n, concentration, note):
    question = question_of(choices, concentration, "oue", "1")
    values = np.zeros(REDUCTIONS["oue"].size(mechanism_for(question)), dtype=np.int64)
    notes = " ".join(model_for(question, QuestionSummary(n, values)).notes)
    assert note in notes
    assert ("weighs" in notes) is bool(note)


# Under this concentration NUTS alone takes a share from nothing to something once in a hundred transitions.
SPARSE, SOME = 0.02, 0.01
COUNTS = np.asarray([8, 11, 6, 39, 11, 9, 9, 7])


@pytest.mark.slow
def test_chains_visit_every_possibly_nonzero_share():
    """Against draws of log shares from the prior (draws, shares), and their posterior weights."""
    question, random = question_of(len(COUNTS), str(SPARSE)), np.random.default_rng(1)
    p = float(mechanism_for(question).p)
    q = (1 - p) / (len(COUNTS) - 1)
    # log Gamma(s) is log Gamma(s + 1) + log U / s: small shapes underflow nothing.
    size = (2_000_000, len(COUNTS))
    logs = np.log(random.gamma(SPARSE + 1, size=size)) + np.log(random.random(size)) / SPARSE
    logs -= logsumexp(logs, axis=1, keepdims=True)
    weights = np.log(q + (p - q) * np.exp(logs)) @ COUNTS
    weights = np.exp(weights - weights.max())
    weights /= weights.sum()
    assert 1 / np.sum(weights**2) > 4000
    with jax.enable_x64(True):
        model = model_for(question, QuestionSummary(int(COUNTS.sum()), COUNTS))
        found = model.parameters(sample(model, seed=1).sites)
        some = {name: (draws > SOME).astype(float) for name, draws in found.items()}
        assert min(mixing(found).ess_bulk.values()) > 400
        for draws, chance in zip(some.values(), weights @ (np.exp(logs) > SOME), strict=True):
            ess = 100.0 if draws.std() == 0 else mixing({"x": draws}).ess_bulk["x"]
            assert draws.mean() == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / ess) + 1e-3)
