"""A law of a number from outside: one line and one file, through study, device, fit, simulation and page."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from inference import fit, summarize
from inference.design.calibration import prior_truths
from inference.design.plan import questions_to_plan
from inference.design.simulation import simulate
from inference.design.truth import with_truth
from inference.models import MODELS, model_for, register
from inference.results.page import render_page
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.documents.errors import InputError, StudyError
from schemas import Study
from schemas.models import MODELS as CATALOGUE
from schemas.models import add_model
from schemas.priors import POSITIVE
from tests import studies
from tests.inference.cut_normal import CutNormal
from tests.inference.simulation import seeded
from tests.kit.errors import raises

TRUTH = {"loc": 4.0, "scale": 2.0}
PEOPLE = 3000


@pytest.fixture(scope="module")
def study():
    add_model("cut_normal", "number", loc=POSITIVE, scale=POSITIVE)
    register(CutNormal)
    prior = {"scale": {"distribution": "half_normal", "scale": "4"}}
    question = {
        **studies.NUMBER,
        "mechanism": {"name": "laplace", "epsilon": "4"},
        "model": {"name": "cut_normal", "prior": prior},
    }
    yield Study(studies.document(question))
    del CATALOGUE["cut_normal"], MODELS["cut_normal"]


@pytest.fixture(scope="module")
def question(study):
    return study.questions[0]


def test_study_may_name_added_law_and_state_only_its_priors(question):
    assert question.model.prior["scale"]["distribution"] == "half_normal"
    wrong = {**studies.NUMBER, "model": {"name": "cut_normal", "prior": {"sd": {}}}}
    with raises(StudyError, "study.invalid", field="questions[0].model.prior.sd"):
        Study(studies.document(wrong))


@pytest.mark.usefixtures("study")
def test_adding_a_law_twice_is_rejected():
    with pytest.raises(ValueError, match="cut_normal"):
        add_model("cut_normal", "number")
    with pytest.raises(ValueError, match="cut_normal"):
        register(CutNormal)


@pytest.mark.slow
def test_added_law_works_from_answers_to_report_page(study, question):
    answers = stats.truncnorm(-2, np.inf, 4, 2).rvs(PEOPLE, random_state=1)
    mechanisms = {question.id: mechanism_for(question)}
    random = seeded(study.digest, answers)
    reports = [perturb_answers(study, mechanisms, {question.id: float(one)}, random) for one in answers]
    posteriors = fit(study, summarize(study, reports), seed=1, method="gaussian_approx")
    found = posteriors[question.id]
    assert found.diagnostics.ok, found.verdict.reasons
    for name, value in TRUTH.items():
        assert abs(found.draws[name].mean() - value) < 5 * found.draws[name].std() < 2.5, name
    page = render_page(study, posteriors)
    assert "cut_normal" in page
    assert "scale ~ half_normal(scale 4)" in page


def test_studies_with_added_law_can_be_simulated(study, question):
    """What `plan` and `calibrate` do before they draw."""
    (planned,) = questions_to_plan(study, question.id, [500], ["2"], seed=0)
    truth = with_truth(planned, prior_truths(planned, 1, seed=0)[0], TRUTH)
    assert truth.parameters == TRUTH
    with raises(InputError, "plan.truth_not_positive", "scale", "-1"):
        with_truth(planned, truth, {"scale": -1.0})
    summary = simulate(planned, mechanism_for(planned), truth, 500, np.random.default_rng(1))
    start = model_for(planned, summary)
    found = start.parameters({name: np.asarray(value) for name, value in start.initial.items()})
    assert found["loc"] == pytest.approx(4.0, rel=0.3)
