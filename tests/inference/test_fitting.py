"""Which questions are fitted, from which seed, with how many chains; fits without reports; coverage."""

import numpy as np
import pytest

from inference import fit, summarize
from inference.design.simulated_posteriors import posterior_draws
from inference.fit_model import NO_REPORTS, posterior_of
from inference.models import model_for
from inference.results.verdict import CONVERGENCE, NOT_USABLE
from inference.sampling.nuts import Sampled
from ldp_client.documents.errors import InputError
from schemas import Study
from summaries import QuestionSummary, Summary
from tests import studies
from tests.inference.posteriors import reasons
from tests.kit.errors import raises
from tests.kit.reporting import reports_of, summary_of
from tests.statistics import share_is

STUDY = Study(studies.document(studies.YES_NO, studies.ONE_OF))
QUICK = {"method": "gaussian_approx"}


def test_posterior_without_reports_is_not_ok():
    draws = {"x": np.random.default_rng(1).normal(size=(4, 1000))}
    sampled = Sampled(draws, np.zeros((4, 1000), bool))
    found = posterior_of(
        sampled, draws, {}, n=0, method="nuts", prior={}, question="q", model="m", study_digest="", seed=0
    )
    assert found.verdict.overall == (NOT_USABLE, (NO_REPORTS,))


@pytest.mark.slow
def test_single_question_gets_same_draws_as_in_full_fit():
    reports = reports_of(STUDY, [{"ever": True, "colour": "worker"}] * 60)
    whole, alone = fit(STUDY, reports, 3, **QUICK), fit(STUDY, reports, 3, questions=["colour"], **QUICK)
    assert list(whole) == ["ever", "colour"]
    assert list(alone) == ["colour"]
    for name, draws in alone["colour"].draws.items():
        np.testing.assert_array_equal(draws, whole["colour"].draws[name])
        assert len(draws) == 4
    six = fit(STUDY, reports, questions="ever", chains=6, **QUICK)["ever"]
    assert len(six.draws["p"]) == 6
    assert not reasons(six, CONVERGENCE)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"questions": ["evr"]}, ("study.unknown_question", "evr': did you mean ever")),
        ({"questions": "income"}, ("study.unknown_question", "income': it has ever, colour")),
        ({"questions": []}, "fit.no_questions_named"),
        ({"priors": {"colr": {}}}, ("study.unknown_question", "colr': did you mean colour")),
        ({"chains": 1}, ("fit.wrong_chain_count", "2", "64")),
        ({"seed": -1}, "fit.wrong_seed"),
        ({"draws": 150}, ("fit.wrong_draw_count", "100", "20000")),
        ({"draws": 20_100}, "fit.wrong_draw_count"),
        ({}, "fit.no_reports"),
    ],
)
def test_invalid_arguments_are_rejected(asked, said):
    with raises(InputError, said):
        fit(STUDY, [], **asked)


def test_draws_option_is_rejected_for_published_method():
    study = Study(studies.document(studies.DDPLR_TABLE, **studies.HOLDER))
    with raises(InputError, "fit.draws_not_for_method", "mcmc_fixeds"):
        fit(study, Summary.empty(study), method="mcmc_fixeds", draws=2000)


def test_nothing_is_fitted_before_all_models_are_built():
    """Bounds too far from 0 for a Poisson law, after a question that could be fitted."""
    far = {**studies.NUMBER, "bounds": ["20000", "20010"], "model": {"name": "poisson"}}
    study = Study(studies.document(studies.YES_NO, far))
    told = []
    summary = summary_of(study, {"ever": QuestionSummary(2, np.asarray([1, 1]))})
    with raises(InputError, "fit.bounds_too_wide", "16384"):
        fit(study, summary, progress=told.append)
    assert told == []


@pytest.mark.attack(19)
def test_reports_of_other_versions_are_noted_in_the_result():
    """Mix reports on another version into the file."""
    study, newer = (Study(studies.document(studies.YES_NO, version=version)) for version in (1, 2))
    reports = [*reports_of(study, [True] * 400), *reports_of(newer, [True] * 7)]
    notes = fit(study, reports, **QUICK)["ever"].notes
    assert any("7 reports answer other versions of the study (version 2)" in note for note in notes)


# Each study is run through the real device mechanisms and the real model. Truths are fixed, so coverage is
# 90 % up to the prior's pull, which these sizes make small.
STUDIES, DRAWS = 60, 400
# Regressions: at epsilon 64 these many records say more than the prior, and the noise is still most of the
# spread.
RECORDS = 1000


def features(random):
    """Inside the bounds of age and years, and of norm 1 after scaling, nearly always."""
    return random.normal(29.0, 4.0, RECORDS), random.normal(11.0, 3.5, RECORDS)


def linear_answers(random):
    age, years = features(random)
    rate = 2.5 + 0.02 * age - 0.05 * years + random.normal(0, 0.35, RECORDS)
    return [{"age": a, "years": b, "rate": c} for a, b, c in zip(age, years, rate)]


def logistic_answers(random):
    age, years = features(random)
    yes = random.random(RECORDS) < 1 / (1 + np.exp(1.0 - 0.06 * age + 0.06 * years))
    return [{"age": a, "years": b, "affair": bool(c)} for a, b, c in zip(age, years, yes)]


POISSON = {**studies.with_epsilon(studies.NUMBER, "2"), "model": {"name": "poisson"}}
CASES = {
    "normal": (
        studies.with_epsilon(studies.AGE, "2"),
        lambda random: list(random.normal(29.0, 6.0, 400)),
        {"mean": 29.0, "sd": 6.0},
    ),
    "poisson": (POISSON, lambda random: list(random.poisson(4.0, 400).astype(float)), {"rate": 4.0}),
    "multinomial oue": (
        studies.CHOICE,
        lambda random: list(random.choice(studies.CHOICE["choices"], 400, p=[0.15, 0.6, 0.25])),
        {"p[student]": 0.15, "p[worker]": 0.6, "p[teacher]": 0.25},
    ),
    "linear": (
        studies.with_epsilon(studies.LINEAR, "64"),
        linear_answers,
        {"intercept": 2.5, "coefficient[age]": 0.02, "coefficient[years]": -0.05, "sd": 0.35},
    ),
    "logistic": (
        # Noise matters less to its sums than to a linear regression's: left out, it shows from here on.
        studies.with_epsilon(studies.LOGISTIC, "40"),
        logistic_answers,
        {"intercept": -1.0, "coefficient[age]": 0.06, "coefficient[years]": -0.06},
    ),
}


@pytest.mark.slow
@pytest.mark.long_runs
@pytest.mark.parametrize("case", CASES)
def test_intervals_have_their_stated_coverage(case):
    document, answers, truth = CASES[case]
    (question,) = (study := Study(studies.document(document))).questions
    reports = [reports_of(study, answers(one)) for one in np.random.default_rng(20261120).spawn(STUDIES)]
    summaries = [summarize(study, some).questions[question.id] for some in reports]
    draws = posterior_draws([model_for(question, part) for part in summaries], seed=0, draws=DRAWS)
    for name, value in truth.items():
        low, high = np.quantile(draws[name], [0.05, 0.95], axis=1)
        assert share_is(int(np.sum((low <= value) & (value <= high))), STUDIES, 0.9), name
