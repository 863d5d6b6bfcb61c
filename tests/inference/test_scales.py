"""Scales: quantities from the shares of their levels, and their texts."""

from __future__ import annotations

import numpy as np
import pytest

from inference import fit
from inference.analyses.assembling import choice_outcome
from inference.analyses.reports import private_of
from inference.results.verdict import INFORMATIVENESS
from ldpkit import ask, study
from schemas import Study, StudyError
from summaries import QuestionSummary
from tests import studies
from tests.inference.posteriors import reasons
from tests.kit.errors import raises
from tests.kit.reporting import summary_of

LEVELS = ["never", "seldom", "often", "always"]
SHARES = np.asarray([0.1, 0.2, 0.6, 0.1])
PEOPLE = 40_000


def scale(*arguments, **options):
    return ask.choice(*arguments, ordered=True, **options)


def asked(**own):
    return study("habits", "Habits", [scale("smokes", LEVELS, epsilon=2, **own)])


def expected(found, shares, people):
    """The summary of as many reports as are expected under randomized response."""
    (question,) = found.questions
    odds, k = np.exp(float(question.mechanism.epsilon)), len(shares)
    channel = (np.ones((k, k)) + (odds - 1) * np.eye(k)) / (odds + k - 1)
    counts = np.rint(people * shares @ channel).astype(np.int64)
    return summary_of(found, {question.id: QuestionSummary(int(counts.sum()), counts)})


@pytest.mark.slow
def test_a_scale_has_cumulative_shares_and_a_mean_place():
    found = asked()
    posterior = fit(found, expected(found, SHARES, PEOPLE), method="gaussian_approx")["smokes"]
    draws = posterior.draws
    shares = np.stack([draws[f"p[{level}]"] for level in LEVELS])
    assert np.allclose(draws["at_most[seldom]"], shares[:2].sum(axis=0))
    assert "at_most[always]" not in draws
    assert np.allclose(draws["mean_place"], np.tensordot([1, 2, 3, 4], shares, 1))
    assert float(np.mean(draws["mean_place"])) == pytest.approx(2.7, abs=0.05)
    assert posterior.is_share("at_most[seldom]")
    assert not posterior.is_share("mean_place")


@pytest.mark.parametrize(("own", "family"), [({}, "ordered"), ({"refusal": True}, "softmax")])
def test_a_formula_takes_a_scale_as_an_ordered_outcome(own, family):
    (question,) = asked(**own).questions
    private = private_of(question, [b"\x01"], are_sets=True)
    assert choice_outcome(private.answers, private.ordered, None).name == family


@pytest.mark.parametrize(
    ("changed", "code"),
    [({"choices": {"count": 5}}, "study.ordered_needs_labels"), ({"ordered": "yes"}, "study.invalid")],
)
def test_ordered_is_rejected_for_questions_without_order(changed, code):
    question = {**studies.CHOICE, "ordered": True, **changed}
    with raises(StudyError, code, field="questions[0].ordered"):
        Study(studies.document({key: value for key, value in question.items() if value is not None}))


TEN_LEVELS = [f"level {i}" for i in range(1, 11)]
HALVING = 0.5 ** np.arange(10) / np.sum(0.5 ** np.arange(10))
PLACE = float(HALVING @ np.arange(1, 11))


def fitted_ten(build, people, **own):
    """Ten levels at ε = 1, of reports as many as are expected."""
    study = ask.study(
        "tired", "Tired", [build("tired", TEN_LEVELS, epsilon=1, mechanism="randomized_response", **own)]
    )
    return fit(study, expected(study, HALVING, people), draws=500, chains=2)["tired"]


@pytest.mark.attack(18)
@pytest.mark.slow
def test_prior_of_a_fine_scale_does_not_pull_to_the_middle():
    """Cut a scale into many levels, so that its prior places people in the middle."""
    found = fitted_ten(scale, 500)
    low, high = found["mean_place"].interval(0.9)
    assert low < PLACE < high


@pytest.mark.attack(18)
@pytest.mark.slow
@pytest.mark.parametrize("build", [scale, ask.choice])
def test_prior_that_moved_shares_is_reported(build):
    """Give each of ten levels a prior answer of its own, which moves the first share to a third."""
    prior = {"p": {"distribution": "dirichlet", "concentration": "1"}}
    found = reasons(fitted_ten(build, 500, prior=prior), INFORMATIVENESS)
    assert "the prior has moved p[level 1]" in found[-1]
    assert ("at_most[level 1]" in found[-1]) is (build is scale)
