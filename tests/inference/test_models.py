"""What the models make of summaries: units, moments, and odd cases."""

import numpy as np
import pytest

from inference.models import MODELS, model_for
from inference.models.regressions import second_moments
from inference.sampling import sample
from ldp_client import mechanism_for
from ldp_client.core.randomness import NotForRealAnswers
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.base import unpack_signed
from schemas import Study
from schemas.models import MODELS as CATALOGUE
from summaries import QuestionSummary, Summary
from tests import studies
from tests.inference.densities import all_finite
from tests.inference.simulation import collected
from tests.kit.errors import raises

RECORDS = [{"age": 20.0 + i, "years": 1.0 * i, "rate": 1 + i % 5} for i in range(20)]


def test_a_model_without_a_likelihood_for_the_mechanism_is_refused(monkeypatch):
    monkeypatch.setattr(MODELS["normal"], "reads", ("laplace",))
    study = Study(studies.document(studies.NORMAL))
    with raises(InputError, "fit.no_likelihood", "weight: 'normal", "gaussian"):
        model_for(study.questions[0], Summary.empty(study).questions["weight"])


def test_a_model_of_too_many_shares_is_refused():
    study = Study(studies.document({**studies.ONE_OF, "choices": {"count": 10_001}}))
    with raises(InputError, "fit.too_many_shares", "10000"):
        model_for(study.questions[0], Summary.empty(study).questions["colour"])


def question_of(template):
    return Study(studies.document(template)).questions[0]


def test_the_catalogue_and_the_models_agree():
    assert set(MODELS) == set(CATALOGUE)


@pytest.mark.parametrize("template", [studies.LINEAR, studies.LOGISTIC], ids=["linear", "logistic"])
def test_decoded_second_moments_match_the_records(template):
    """With the noise taken away, the decoded statistic is Σvvᵀ in scaled units."""
    question = question_of({**template, "norm": "2"})
    mechanism = mechanism_for(question)
    total = np.zeros(len(mechanism.coordinates), dtype=np.int64)
    expected = np.zeros((4, 4))
    for record in RECORDS:
        answer = dict(record)
        y = (answer["rate"] - 3) / 2
        if template is studies.LOGISTIC:
            y = 1.0 if answer.pop("rate") > 3 else -1.0
            answer["affair"] = y > 0
        total += unpack_signed(mechanism.randomise(mechanism.quantise(answer), NotForRealAnswers(bytes)))
        x = [(record["age"] - 29.75) / 12.25, (record["years"] - 11.5) / 11.5]
        v = np.array([mechanism.scaled_weight, *x, mechanism.scaled_weight * y])
        expected += np.outer(v, v)
    found = second_moments(mechanism, QuestionSummary(len(RECORDS), total))
    assert found == pytest.approx(expected, abs=len(RECORDS) * (2 / mechanism.grid + 1e-5))


def test_regression_parameters_return_to_their_own_units():
    """In scaled units y = 0.1 + 0.5 x1 − 0.2 x2; the same line in years, and in points of the rating."""
    model = model_for(
        question_of(studies.LINEAR), Summary.empty(Study(studies.document())).questions["rating"]
    )
    draws = {"intercept": np.array(0.1), "coefficients": np.array([0.5, -0.2]), "sd": np.array(0.3)}
    found = model.parameters(draws)
    for age, years in [(20.0, 3.0), (41.0, 22.0)]:
        own = found["intercept"] + found["coefficient[age]"] * age + found["coefficient[years]"] * years
        scaled = 0.1 + 0.5 * (age - 29.75) / 12.25 - 0.2 * (years - 11.5) / 11.5
        assert own == pytest.approx(3 + 2 * scaled)
    assert found["sd"] == pytest.approx(0.6)


def test_number_parameters_return_to_their_own_units():
    empty = Summary.empty(Study(studies.document()))
    normal = model_for(question_of(studies.AGE), empty.questions["age"])
    found = normal.parameters({"mean": np.array(0.5), "sd": np.array(0.1)})
    assert (found["mean"], found["sd"]) == (30.0, 3.0)
    exponential = model_for(question_of(studies.NUMBER), empty.questions["hours"])
    assert exponential.parameters({"rate": np.array(3.0)})["rate"] == 0.25


def extreme_summaries(study):
    """No report, one report, everybody at one bound, and statistics that no real data could have."""
    question = study.questions[0]
    size = len(Summary.empty(study).questions[question.id].values)
    yield QuestionSummary(0, np.zeros(size, dtype=np.int64))
    for place in (0, size // 2, size - 1):
        for n in (1, 10**9):
            values = np.zeros(size, dtype=np.int64)
            values[place] = n
            yield QuestionSummary(n, values)
    if question.ask == "record":
        # Indefinite, negative, and of one person only.
        for n, value in ((1000, -(10**11)), (1000, 10**11), (1, -(10**11))):
            yield QuestionSummary(n, np.full(size, value))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.05", "1", "20"])
@pytest.mark.parametrize("template", studies.ALL, ids=lambda template: template["id"])
def test_odd_summaries_have_finite_density_and_gradient(template, epsilon):
    study = Study(studies.document(studies.with_epsilon(template, epsilon)))
    assert all_finite(study.questions[0], extreme_summaries(study))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.05", "20"])
@pytest.mark.parametrize("template", [studies.LINEAR, studies.LOGISTIC], ids=["linear", "logistic"])
def test_one_feature_with_odd_summaries_is_finite(template, epsilon):
    one = {**studies.with_epsilon(template, epsilon), "features": studies.FEATURES[:1]}
    study = Study(studies.document(one))
    assert all_finite(study.questions[0], extreme_summaries(study))


@pytest.mark.slow
def test_without_reports_the_posterior_is_the_prior():
    study = Study(studies.document(studies.LINEAR))
    drawn = sample(model_for(study.questions[0], Summary.empty(study).questions["rating"]), seed=1)
    slopes = drawn.sites["coefficients"].reshape(-1, 2)
    assert slopes.mean(axis=0) == pytest.approx([0, 0], abs=0.12)
    assert slopes.std(axis=0) == pytest.approx([1, 1], abs=0.12)


def test_chains_start_apart():
    summary = Summary.empty(Study(studies.document())).questions["ever"]
    model = model_for(question_of(studies.YES_NO), summary)
    drawn = sample(model, seed=1, warmup=(), kept=100)
    assert len(set(drawn.sites["p"][:, 0])) == 4


def test_too_few_reports_for_column_sums_are_noted():
    wide = {**studies.CHOICE, "choices": [f"c{i}" for i in range(13)]}
    study = Study(studies.document(studies.with_epsilon(wide, "4")))
    values = np.full(13, 5)
    few, many = (model_for(study.questions[0], QuestionSummary(n, values)) for n in (20, 5000))
    assert "too few" in few.notes[1]
    assert len(many.notes) == 1


@pytest.mark.slow
def test_wide_choices_use_column_sums():
    wide = {**studies.CHOICE, "choices": [f"c{i}" for i in range(40)]}
    study = Study(studies.document(studies.with_epsilon(wide, "4")))
    answers = ["c0"] * 12_000 + ["c1"] * 8_000
    summary = collected(study, answers).questions["occupation"]
    drawn = sample(model_for(study.questions[0], summary), seed=3, kept=300)
    shares = drawn.sites["p"].reshape(-1, 40).mean(axis=0)
    assert shares[0] == pytest.approx(0.6, abs=0.1)
    assert shares[1] == pytest.approx(0.4, abs=0.1)
