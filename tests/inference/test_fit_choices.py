"""Which questions are fitted, from which seed, with how many chains."""

from __future__ import annotations

import numpy as np
import pytest

from inference import fit
from inference.results.convergence import diagnose
from inference.results.verdict import CONVERGENCE, Verdict
from ldp_client.documents.errors import InputError
from schemas import Study
from summaries import QuestionSummary, Summary
from tests import studies
from tests.inference.posteriors import reasons
from tests.kit.errors import raises
from tests.kit.reporting import reports_of, summary_of

STUDY = Study(studies.document(studies.YES_NO, studies.ONE_OF))
REPORTS = reports_of(STUDY, [{"ever": True, "colour": "worker"}] * 60)


def fast(**more):
    return fit(STUDY, REPORTS, method="gaussian_approx", **more)


@pytest.mark.slow
def test_single_question_gets_same_draws_as_in_full_fit():
    whole, alone = fast(seed=3), fast(seed=3, questions=["colour"])
    assert list(whole) == ["ever", "colour"]
    assert list(alone) == ["colour"]
    for name, draws in alone["colour"].draws.items():
        np.testing.assert_array_equal(draws, whole["colour"].draws[name])
        assert len(draws) == 4
    assert alone["colour"].seed == 3
    six = fast(questions="ever", chains=6)["ever"]
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
        ({"chains": 4.0}, ("fit.wrong_chain_count", "2", "64")),
        ({"seed": -1}, "fit.wrong_seed"),
        ({"draws": 0}, ("fit.wrong_draw_count", "100", "20000")),
        ({"draws": 150}, "fit.wrong_draw_count"),
        ({"draws": 20_100}, "fit.wrong_draw_count"),
        ({"draws": True}, "fit.wrong_draw_count"),
    ],
)
def test_invalid_options_are_rejected_before_reading_reports(asked, said):
    with raises(InputError, said):
        fit(STUDY, None, **asked)


def test_draws_option_is_rejected_for_published_method():
    study = Study(studies.document(studies.DDPLR_TABLE, **studies.HOLDER))
    with raises(InputError, "fit.draws_not_for_method", "mcmc_fixeds"):
        fit(study, Summary.empty(study), method="mcmc_fixeds", draws=2000)


def test_independent_draws_that_are_not_finite_are_not_ok():
    draws = {"x": np.full((4, 100), np.nan), "y": np.zeros((4, 100))}
    found, _ = diagnose(draws, np.zeros((4, 100), bool), chained=False)
    assert Verdict.of_findings(found).reasons == ("draws of x are not finite: use --method nuts",)


def test_nothing_is_fitted_before_all_models_are_built():
    """Bounds too far from 0 for a Poisson law, after a question that could be fitted."""
    far = {**studies.NUMBER, "bounds": ["20000", "20010"], "model": {"name": "poisson"}}
    study = Study(studies.document(studies.YES_NO, far))
    told = []
    summary = summary_of(study, {"ever": QuestionSummary(2, np.asarray([1, 1]))})
    with raises(InputError, "fit.bounds_too_wide", "16384"):
        fit(study, summary, progress=told.append)
    assert told == []
