"""Choices and scales: the form of each mechanism's likelihood, its notes, and quantities from shares."""

import numpy as np
import pytest

from inference import fit
from inference.analyses.families import choice_outcome
from inference.analyses.private_columns import private_of
from inference.models import model_for
from inference.results.verdict import INFORMATIVENESS
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from ldpkit import ask
from schemas import Report, Study, StudyError
from summaries import QuestionSummary, summarize
from summaries.reductions import REDUCTIONS
from tests import studies
from tests.inference.posteriors import reasons
from tests.kit import reporting
from tests.kit.errors import raises


def study_of(name: str, choices: int, epsilon: str = "4") -> Study:
    mechanism = {"name": name, "epsilon": epsilon}
    return Study(studies.document({**studies.CHOICE, "choices": {"count": choices}, "mechanism": mechanism}))


def test_too_many_shares_are_rejected():
    with raises(InputError, "fit.too_many_shares", "10000"):
        model_for(study_of("oue", 10_001).questions[0], QuestionSummary(0, np.zeros(10_001, dtype=np.int64)))


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
def test_reports_modelled_one_by_one_are_checked_for_misfit() -> None:
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


def scale(*arguments, **options):
    return ask.choice(*arguments, ordered=True, **options)


def expected(study, shares, people):
    """The summary of as many reports as are expected under randomized response."""
    (question,) = study.questions
    odds, k = np.exp(float(question.mechanism.epsilon)), len(shares)
    channel = (np.ones((k, k)) + (odds - 1) * np.eye(k)) / (odds + k - 1)
    counts = np.rint(people * shares @ channel).astype(np.int64)
    return reporting.summary_of(study, {question.id: QuestionSummary(int(counts.sum()), counts)})


LEVELS = ["never", "seldom", "often", "always"]


@pytest.mark.parametrize(("refusal", "family"), [(False, "ordered"), (True, "softmax")])
def test_a_formula_takes_a_scale_as_an_ordered_outcome(refusal, family):
    (question,) = ask.study(
        "habits", "Habits", [scale("smokes", LEVELS, epsilon=2, refusal=refusal)]
    ).questions
    private = private_of(question, [b"\x01"], are_sets=True)
    assert choice_outcome(private.answers, private.ordered, None).name == family


@pytest.mark.parametrize(
    ("changed", "code"),
    [({"choices": {"count": 5}}, "study.ordered_needs_labels"), ({"ordered": "yes"}, "study.invalid")],
)
def test_ordered_is_rejected_for_questions_without_order(changed, code):
    with raises(StudyError, code, field="questions[0].ordered"):
        studies.question_of({**studies.CHOICE, "ordered": True}, **changed)


HALVING = 0.5 ** np.arange(10) / np.sum(0.5 ** np.arange(10))


def fitted_ten(build, **own):
    """Ten levels at ε = 1, of reports as many as are expected of 500 people."""
    labels = [f"level {i}" for i in range(1, 11)]
    asked = build("tired", labels, epsilon=1, mechanism="randomized_response", **own)
    study = ask.study("tired", "Tired", [asked])
    return fit(study, expected(study, HALVING, 500), draws=500, chains=2)["tired"]


@pytest.mark.attack(18)
@pytest.mark.slow
def test_prior_of_a_fine_scale_does_not_pull_to_the_middle():
    """Cut a scale into many levels, so that its prior places people in the middle."""
    low, high = fitted_ten(scale)["mean_place"].interval(0.9)
    assert low < HALVING @ np.arange(1, 11) < high


@pytest.mark.attack(18)
@pytest.mark.slow
@pytest.mark.parametrize("build", [scale, ask.choice])
def test_prior_that_moved_shares_is_reported(build):
    """Give each of ten levels a prior answer of its own, which moves the first share to a third."""
    prior = {"p": {"distribution": "dirichlet", "concentration": "1"}}
    found = reasons(fitted_ten(build, prior=prior), INFORMATIVENESS)
    assert "the prior has moved p[level 1]" in found[-1]
    assert ("at_most[level 1]" in found[-1]) is (build is scale)
