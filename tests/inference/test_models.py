"""What the models make of summaries: units, moments, and odd cases."""

import numpy as np
import pytest

from inference.models import MODELS, model_for
from inference.sampling import sample
from ldp_client.documents.errors import InputError
from schemas import Study
from summaries import QuestionSummary, Summary
from tests import studies
from tests.inference.densities import all_finite
from tests.kit.errors import raises
from tests.kit.reporting import reduced


def test_a_model_without_a_likelihood_for_the_mechanism_is_refused(monkeypatch):
    monkeypatch.setattr(MODELS["normal"], "reads", ("laplace",))
    study = Study(studies.document(studies.NORMAL))
    with raises(InputError, "fit.no_likelihood", "weight: 'normal", "gaussian"):
        model_for(study.questions[0], Summary.empty(study).questions["weight"])


def test_a_model_of_too_many_shares_is_refused():
    study = Study(studies.document({**studies.ONE_OF, "choices": {"count": 10_001}}))
    with raises(InputError, "fit.too_many_shares", "10000"):
        model_for(study.questions[0], Summary.empty(study).questions["colour"])


def test_regression_parameters_return_to_their_own_units():
    """In scaled units y = 0.1 + 0.5 x1 − 0.2 x2; the same line in years, and in points of the rating."""
    model = model_for(
        studies.question_of(studies.LINEAR), Summary.empty(Study(studies.document())).questions["rating"]
    )
    draws = {"intercept": np.array(0.1), "coefficients": np.array([0.5, -0.2]), "sd": np.array(0.3)}
    found = model.parameters(draws)
    for age, years in [(20.0, 3.0), (41.0, 22.0)]:
        own = found["intercept"] + found["coefficient[age]"] * age + found["coefficient[years]"] * years
        scaled = 0.1 + 0.5 * (age - 29.75) / 12.25 - 0.2 * (years - 11.5) / 11.5
        assert own == pytest.approx(3 + 2 * scaled)
    assert found["sd"] == pytest.approx(0.6)


@pytest.mark.slow
def test_a_law_of_positive_numbers_is_fitted_with_bounds_below_zero():
    laplace = {"name": "laplace", "epsilon": "4"}
    own = {"bounds": ["-6", "6"], "mechanism": laplace, "model": {"name": "gamma"}}
    question = studies.question_of({**studies.NUMBER, **own})
    model = model_for(question, reduced(question, np.random.default_rng(2).gamma(3.0, 1.0, 20_000)))
    drawn = model.parameters(sample(model, seed=1, kept=200).sites)
    assert drawn["mean"].mean() == pytest.approx(3.0, abs=5 * drawn["mean"].std())
    assert drawn["mean"].std() < 0.2


def test_a_logistic_model_of_records_needs_reports():
    with raises(InputError, "fit.summary_not_exact", "chance:"):
        model_for(studies.question_of(studies.YES_NO_RECORD), QuestionSummary(5, np.zeros(0, dtype=np.int64)))


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
@pytest.mark.parametrize("epsilon", ["0.05", "20"])
@pytest.mark.parametrize("template", studies.ALL, ids=lambda template: template["id"])
def test_odd_summaries_have_finite_density_and_gradient(template, epsilon):
    study = Study(studies.document(studies.with_epsilon(template, epsilon)))
    assert all_finite(study.questions[0], extreme_summaries(study))


def test_too_few_reports_for_column_sums_are_noted():
    wide = {**studies.CHOICE, "choices": [f"c{i}" for i in range(13)]}
    study = Study(studies.document(studies.with_epsilon(wide, "4")))
    values = np.full(13, 5)
    few, many = (model_for(study.questions[0], QuestionSummary(n, values)) for n in (20, 5000))
    assert "too few" in few.notes[1]
    assert len(many.notes) == 1
