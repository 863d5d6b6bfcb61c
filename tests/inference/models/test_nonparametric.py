"""A number without a law: exact channel, sampler that mixes, intervals with the stated coverage."""

import numpy as np
import pytest
from scipy import integrate, stats

from benchmarks import nonparametric as nonparametric_studies
from inference.design.calibration import prior_truths
from inference.design.truth import completed
from inference.fitting import fit_question
from inference.histogram import Histogram
from inference.likelihoods.numbers.noise import cells_channel
from inference.models import model_for
from inference.predictive import of_histogram
from inference.results.verdict import CONVERGENCE
from ldp_client.documents.errors import InputError, StudyError
from schemas import Study
from summaries import QuestionSummary
from tests import studies
from tests.inference.posteriors import page_of, reasons
from tests.kit.errors import raises
from tests.statistics import share_is

NO_MODEL = {key: value for key, value in studies.NUMBER.items() if key != "model"}


ASKED = {**NO_MODEL, "bounds": ["0", "1"], "mechanism": {"name": "laplace", "epsilon": "4"}}


def test_number_without_model_gets_free_model():
    question = studies.question_of(NO_MODEL)
    assert (question.model.name, question.model.prior) == ("nonparametric", {})
    with raises(StudyError, "study.invalid", field="questions[0].model"):
        studies.question_of({key: value for key, value in studies.YES_NO.items() if key != "model"})


@pytest.mark.parametrize(("name", "law"), [("laplace", stats.laplace), ("gaussian", stats.norm)])
def test_channel_matches_integral_over_each_cell(name, law):
    edges, scale = np.linspace(-0.2, 1.2, 8), 0.3
    found = cells_channel(name, scale, 4, edges)
    assert found.shape == (6, 9)
    assert found.sum(axis=1) == pytest.approx(1, abs=1e-12)
    for cell in range(4):
        for k in range(7):
            within = lambda x, k=k: law.cdf(edges[k + 1], x, scale) - law.cdf(edges[k], x, scale)  # noqa: E731
            bends = [edge for edge in edges[k : k + 2] if cell / 4 < edge < (cell + 1) / 4] or None
            exact = 4 * integrate.quad(within, cell / 4, (cell + 1) / 4, points=bends, epsabs=1e-13)[0]
            assert found[1 + cell, 1 + k] == pytest.approx(exact, abs=1e-11)
    assert found[-1, 0] == pytest.approx(law.cdf(edges[0], 1, scale), abs=1e-12)


@pytest.mark.slow
def test_intervals_have_their_stated_coverage():
    """For a law with two modes and many reports; `benchmarks.nonparametric` has all laws."""
    found = nonparametric_studies.simulated(studies.question_of(ASKED), "bimodal", 100_000, 60, 1, 1000)
    held = nonparametric_studies.coverage("bimodal", found)
    assert found.r_hat < 1.03, found.r_hat
    assert share_is(round(60 * held["mean"]), 60, 0.9), held
    assert np.mean([share for name, share in held.items() if name.startswith("above[")]) > 0.8, held


@pytest.mark.slow
def test_answers_all_at_a_bound_are_fitted_and_drawn_on_page():
    (question,) = (study := Study(studies.document(ASKED))).questions
    cells = nonparametric_studies.report_cells(question, np.zeros(1))
    part = QuestionSummary(3000, np.random.default_rng(4).multinomial(3000, cells / cells.sum()))
    found = fit_question(study, question, model_for(question, part), part.n)
    rows = found.rows()
    assert rows["mean"]["q05"] <= 1e-6 < rows["mean"]["q95"] < 0.05
    assert rows["above[0.5]"]["q05"] <= 1e-6
    assert not reasons(found, CONVERGENCE)
    document = found.to_document()["law"]
    assert len(document["edges"]) == len(document["density"]["q50"]) + 1 == 65
    assert document["at_bounds"]["q05"][0] > 0.8
    page = page_of({"hours": found}, study)
    assert "density of the answers to hours" in page


def test_truth_of_free_model_cannot_be_stated():
    question = studies.question_of(ASKED)
    truth = prior_truths(question, 1, 1)[0].parameters
    with raises(InputError, "plan.truth_of_free_model"):
        completed(question, truth, {"mean": 0.5})
    assert completed(question, truth, {}) == truth


def expected_cells(law, epsilon=4.0):
    """Probabilities of cells of reports under a law clipped to 0 … 1, by a fine sum; and the channel."""
    edges = np.linspace(0, 1, 257)
    fine = np.linspace(0, 1, 2001)
    masses = np.diff(np.concatenate([[0.0], law.cdf(fine[:-1] + 0.00025), [1.0]]))

    def seen(answers):
        below = stats.laplace.cdf(edges, answers[:, None], 1 / epsilon)
        rest = np.zeros((len(answers), 1))
        return np.diff(np.concatenate([rest, below, rest + 1], axis=1), axis=1)

    return masses @ seen(fine), seen(np.linspace(0, 1, 65))


@pytest.mark.parametrize(
    ("law", "fits"), [(stats.norm(0.4, 0.2), True), (stats.lognorm(0.6, 0, 0.33), False)]
)
def test_law_is_compared_with_mean_found_without_law(law, fits):
    truth, channel = expected_cells(law)
    fitted = stats.norm(0.4, 0.2) if fits else stats.norm(0.372, 0.224)
    moves = [(0.001, 0.0), (-0.001, 0.0), (0.0, 0.001), (0.0, -0.001)]
    near = [expected_cells(stats.norm(fitted.mean() + m, fitted.std() + s))[0] for m, s in moves]
    observed = np.random.default_rng(6).multinomial(100_000, truth / truth.sum()).astype(float)
    histogram = Histogram(observed, np.stack(near), channel, 2)
    found = histogram.mean_without_law()
    exact = np.clip(law.rvs(400_000, random_state=7), 0, 1).mean()
    assert found.free == pytest.approx(exact, abs=4 * found.error + 0.002)
    assert found.error < 0.002
    assert (found.p > 1e-3) == fits
    reasons_of = [one.text for one in of_histogram(histogram, (10.0, 15.0))]
    assert any("fit the model 'nonparametric'" in reason for reason in reasons_of) != fits
