"""Regressions from perturbed records: through the real mechanism, from reports and from files."""

from __future__ import annotations

import numpy as np
import pytest

from inference import fit, summarize
from inference.models import family_of, model_for
from inference.models.base import Truth
from inference.models.regression import Scale
from inference.models.replicates import records
from inference.sampling import sample
from ldp_client import mechanism_for
from ldp_client.answering import perturb_answers
from ldp_client.bulk import perturb_many
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError, SummaryError
from schemas import Study
from summaries import QuestionSummary, Summary
from summaries.reading import load_summary
from summaries.reductions.records import record_rows
from tests import studies
from tests.inference.densities import value_and_gradient
from tests.inference.simulation import seeded
from tests.kit.errors import raises

SLOPES, INTERCEPT, SD = np.array([0.02, -0.05]), 2.5, 0.35
LOGIT_SLOPES, LOGIT_INTERCEPT = np.array([0.15, -0.15]), -2.5
STRONG = {"name": "gaussian_record", "epsilon": "40", "delta": "1e-5", "response_share": "0.25"}
LINEAR = {**studies.RECORD, "mechanism": STRONG}
LOGISTIC = {**studies.YES_NO_RECORD, "mechanism": STRONG}


def features(random, n):
    return np.column_stack([random.normal(29.0, 4.0, n), random.normal(11.0, 3.5, n)])


def linear_answers(random, n):
    x = features(random, n)
    y = INTERCEPT + x @ SLOPES + random.normal(0, SD, n)
    return [{"age": a, "years": b, "rate": c} for (a, b), c in zip(x.tolist(), y.tolist(), strict=True)]


def logistic_answers(random, n):
    x = features(random, n)
    yes = random.random(n) < 1 / (1 + np.exp(-(LOGIT_INTERCEPT + x @ LOGIT_SLOPES)))
    return [{"age": a, "years": b, "affair": c} for (a, b), c in zip(x.tolist(), yes.tolist(), strict=True)]


def reports_of(study, answers):
    name = study.questions[0].id
    mechanisms = {name: mechanism_for(study.questions[0])}
    random = seeded(study.digest, answers)
    return [perturb_answers(study, mechanisms, {name: answer}, random) for answer in answers]


def near(drawn, truth):
    """Each parameter within five posterior sd of the truth, and known to within a fifth of its prior."""
    for name, value in truth.items():
        assert drawn[name].mean() == pytest.approx(value, abs=5 * drawn[name].std()), name


@pytest.mark.slow
def test_a_linear_model_finds_the_line():
    study = Study(studies.document(LINEAR))
    summary = summarize(study, reports_of(study, linear_answers(np.random.default_rng(1), 3000)))
    model = model_for(study.questions[0], summary.questions["wage"])
    drawn = model.parameters(sample(model, seed=1, kept=200).sites)
    near(drawn, {"coefficient[age]": 0.02, "coefficient[years]": -0.05, "sd": SD})
    # A ninth of the prior's: the noise is another in each run, its size is not.
    assert drawn["coefficient[years]"].std() < 0.02


@pytest.mark.slow
def test_a_logistic_model_finds_the_line_from_a_file_of_reports(tmp_path):
    study = Study(studies.document(LOGISTIC))
    reports = reports_of(study, logistic_answers(np.random.default_rng(2), 1000))
    path = tmp_path / "reports.ndjson"
    path.write_text("".join(report.to_json() + "\n" for report in reports))
    summary = load_summary(study, str(path))
    with raises(SummaryError, "summary.not_serializable", field="questions.chance"):
        summary.to_json()
    posterior = fit(study, summary, seed=3, method="gaussian_approx")["chance"]
    near(posterior.draws, {"coefficient[age]": 0.15, "coefficient[years]": -0.15})
    assert posterior.n == 1000
    assert posterior.predictive.observed.sum() == pytest.approx(2)
    assert not posterior.predictive.misfit


def test_replicated_records_match_device_reports():
    """Counts in cells of perturbed features and told responses, from devices and from the model's own law."""
    (question,) = Study(studies.document(LOGISTIC)).questions
    mechanism = mechanism_for(question)
    random = np.random.default_rng(6)
    sites = {
        "intercept": np.asarray(0.3),
        "coefficients": np.asarray([0.8, -0.5]),
        "feature_mean": np.asarray([0.1, -0.1]),
        "feature_sd": np.asarray([0.2, 0.25]),
        "feature_correlation": np.linalg.cholesky([[1, 0.5], [0.5, 1]]),
    }
    own = {name: float(value) for name, value in Scale(question).parameters(sites).items()}
    answers = family_of(question).simulate(question, Truth(own, sites), 40_000, random)
    sent = perturb_many(mechanism, answers, NotForRealAnswers(random.bytes))
    found = records(mechanism, np.column_stack(record_rows(mechanism, sent)))
    drawn = found.draw(sites, random)
    away = (found.observed - drawn) / np.sqrt(found.observed + drawn + 1)
    assert np.abs(away).max() < 6
    wrong = found.draw({**sites, "intercept": np.asarray(-0.3)}, random)
    assert np.abs((found.observed - wrong) / np.sqrt(found.observed + wrong + 1)).max() > 6


def test_a_logistic_model_needs_reports():
    study = Study(studies.document(LOGISTIC))
    with raises(InputError, "fit.summary_not_exact", "chance:"):
        model_for(study.questions[0], QuestionSummary(5, np.zeros(0, dtype=np.int64)))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.5", "20"])
@pytest.mark.parametrize("template", [studies.RECORD, studies.YES_NO_RECORD], ids=["linear", "logistic"])
def test_density_is_finite_for_zero_or_one_report(template, epsilon):
    study = Study(studies.document(studies.with_epsilon(template, epsilon)))
    name = study.questions[0].id
    one = summarize(study, reports_of(study, [studies.NEWER_ANSWERS[name]])).questions[name]
    for summary in (Summary.empty(study).questions[name], one):
        value, slope = value_and_gradient(model_for(study.questions[0], summary))
        assert np.isfinite(value)
        assert np.isfinite(slope).all()


def test_density_is_finite_for_one_feature():
    study = Study(studies.document({**LINEAR, "features": studies.FEATURES[:1]}))
    answers = [{"age": 20.0 + i, "rate": 2.0 + i / 10} for i in range(20)]
    summary = summarize(study, reports_of(study, answers)).questions["wage"]
    value, slope = value_and_gradient(model_for(study.questions[0], summary))
    assert np.isfinite(value)
    assert np.isfinite(slope).all()
