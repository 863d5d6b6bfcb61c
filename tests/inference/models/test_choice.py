"""Choices and scales: likelihoods and notes, the weight of the prior of shares, and jumps of chains."""

import jax
import numpy as np
import pytest
from scipy.special import logsumexp

from inference import fit
from inference.models import model_for
from inference.models.shares import noiseless_answers, prior_weight
from inference.results.convergence import mixing
from inference.results.verdict import INFORMATIVENESS
from inference.sampling.nuts import sample
from ldp_client import mechanism_for
from ldpkit import ask
from schemas import Report, Study, StudyError
from summaries import QuestionSummary, summarize
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.inference.posteriors import reasons
from tests.kit import reporting
from tests.kit.errors import raises


def study_of(name, choices):
    return Study(studies.document(studies.choice_of(name, choices, "4")))


@pytest.mark.parametrize(
    ("name", "choices", "n", "reports", "notes"),
    [
        ("hadamard", 40, 0, None, []),
        ("oue", 12, 0, None, []),
        ("oue", 13, 5000, None, ["the likelihood is normal"]),
        ("oue", 13, 20, None, ["the likelihood is normal", "too few"]),
        ("oue", 13, 3, np.zeros((3, 2), dtype=np.uint8), []),
    ],
)
def test_normal_form_has_a_note(name, choices, n, reports, notes):
    (question,) = study_of(name, choices).questions
    size = REDUCTIONS[name].size(mechanism_for(question))
    found = model_for(question, QuestionSummary(n, np.zeros(size, dtype=np.int64), reports)).notes
    found = [note for note in found if "weighs" not in note]
    assert [part in note for part, note in zip(notes, found, strict=True)] == [True] * len(notes)


@pytest.mark.slow
def test_reports_modelled_one_by_one_are_checked_for_misfit():
    """Honest reports of 400 people fit; 400 reports of the same set do not."""
    study = study_of("subset_selection", 16)
    reports = reporting.reports_of(study, [i % 16 for i in range(400)])
    found = fit(study, reports, seed=2)["occupation"]
    assert not any("the likelihood is normal" in note for note in found.notes)
    counts = summarize(study, reports).questions["occupation"].values
    assert found.predictive.observed == pytest.approx(counts / 400)
    assert not found.predictive.misfit
    some = reports[0].payloads
    same = [Report(one.id, one.study, one.version, one.digest, some) for one in reports]
    assert fit(study, same, seed=2)["occupation"].predictive.misfit


@pytest.mark.parametrize(
    ("changed", "code"),
    [({"choices": {"count": 5}}, "study.ordered_needs_labels"), ({"ordered": "yes"}, "study.invalid")],
)
def test_ordered_is_rejected_for_questions_without_order(changed, code):
    with raises(StudyError, code, field="questions[0].ordered"):
        studies.question_of({**studies.CHOICE, "ordered": True}, **changed)


HALVING = 0.5 ** np.arange(10) / np.sum(0.5 ** np.arange(10))


def fitted_ten(**own):
    """Ten levels at ε = 1, of reports as many as are expected of 500 people."""
    labels = [f"level {i}" for i in range(1, 11)]
    asked = ask.choice("tired", labels, epsilon=1, mechanism="randomized_response", **own)
    study = ask.study("tired", "Tired", [asked])
    channel = (np.ones((10, 10)) + (np.e - 1) * np.eye(10)) / (np.e + 9)
    counts = np.rint(500 * HALVING @ channel).astype(np.int64)
    part = QuestionSummary(int(counts.sum()), counts)
    return fit(study, reporting.summary_of(study, {"tired": part}), draws=500, chains=2)["tired"]


@pytest.mark.attack(18)
@pytest.mark.slow
def test_prior_of_a_fine_scale_does_not_pull_to_the_middle():
    """Cut a scale into many levels, so that its prior places people in the middle."""
    low, high = fitted_ten(ordered=True)["mean_place"].interval(0.9)
    assert low < HALVING @ np.arange(1, 11) < high


@pytest.mark.attack(18)
@pytest.mark.slow
@pytest.mark.parametrize("ordered", [True, False])
def test_prior_that_moved_shares_is_reported(ordered):
    """Give each of ten levels a prior answer of its own, which moves the first share to a third."""
    prior = {"p": {"distribution": "dirichlet", "concentration": "1"}}
    found = reasons(fitted_ten(ordered=ordered, prior=prior), INFORMATIVENESS)
    assert "the prior has moved p[level 1]" in found[-1]
    assert ("at_most[level 1]" in found[-1]) is ordered


def question_of(choices, concentration, mechanism="randomized_response", epsilon="2"):
    prior = {"p": {"distribution": "dirichlet", "concentration": concentration}}
    model = {"name": "multinomial", "prior": prior}
    return studies.question_of(studies.choice_of(mechanism, choices, epsilon), model=model)


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
