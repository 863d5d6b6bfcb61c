"""Answer whole or heaped numbers where a study is cut, so that a smooth law within bins misses them.

Defence: The analysis: mean and sd are over all laws within the bins; where the line rests on how answers
lie there, the verdict's knowledge is partial, with its exit code. `ldpkit study check` advises cuts
between.
"""

import numpy as np
import pytest
from scipy import stats

from inference.fitting import draw_posterior
from inference.models import model_for
from inference.models.leveled_cells import levels_of
from inference.models.product_cells import cell_probabilities
from inference.models.within_bins import Bins, over_all_laws, sd_bounds
from ldp_client import mechanism_for
from ldp_client.cli import main
from schemas import Study
from summaries import QuestionSummary
from tests import studies

CHILDREN = np.arange(9)
POISSON = stats.poisson(1.8).pmf(CHILDREN) / stats.poisson(1.8).cdf(8)
ON_NUMBERS, BETWEEN = ["1", "2", "3", "4", "5"], [f"{number}.5" for number in range(8)]


def study_of(*cuts):
    asked = {
        "id": "family",
        "ask": "record",
        "features": [{"id": "children", "bounds": ["0", "8"], "cuts": list(cuts)}],
        "response": {"id": "ill", "ask": "yes_no"},
        "mechanism": {"name": "sampled_products", "epsilon": "4"},
        "model": {"name": "logistic_regression"},
    }
    return Study(studies.document(asked))


def fit_of(cuts, people, law=POISSON, intercept=-2.0, slope=0.5):
    """The fit of the counts that so many people leave on average."""
    study = study_of(*cuts)
    (question,) = study.questions
    mechanism = mechanism_for(question)
    codes = levels_of(mechanism)[0].codes[np.searchsorted(np.asarray(cuts, float), CHILDREN, side="right")]
    vectors = np.column_stack([np.ones(len(CHILDREN)), codes])
    response = vectors.T @ (law * np.tanh((intercept + slope * CHILDREN) / 2))
    second = np.block([[vectors.T * law @ vectors, response[:, None]], [response[None], np.ones((1, 1))]])
    counts = np.rint(people * cell_probabilities(mechanism, {"second": second})).astype(int)
    summary = QuestionSummary(int(counts.sum()), counts)
    return draw_posterior(study, question, model_for(question, summary), summary.n, 1, "laplace")


@pytest.mark.slow
def test_whole_numbers_at_cuts_are_within_the_interval_or_the_verdict_says_so():
    found, mean = fit_of(ON_NUMBERS, 20_000), POISSON @ CHILDREN
    rows = found.rows()
    assert rows["mean[children]"]["q05"] <= mean <= rows["mean[children]"]["q95"]
    sd = np.sqrt(POISSON @ CHILDREN**2 - mean**2)
    assert rows["sd[children]"]["q05"] <= sd <= rows["sd[children]"]["q95"]
    assert found.verdict.knowledge.state == "partial"
    assert "about intercept" in found.verdict.knowledge.reasons[0]
    assert any("over all laws within the bins" in note for note in found.diagnostics.notes)


@pytest.mark.slow
def test_cuts_between_whole_numbers_tell_mean_and_line():
    found = fit_of(BETWEEN, 20_000)
    rows = found.rows()
    assert rows["mean[children]"]["mean"] == pytest.approx(POISSON @ CHILDREN, abs=0.03)
    assert rows["mean[children]"]["sd"] < 0.05
    assert rows["coefficient[children]"]["mean"] == pytest.approx(0.5, abs=0.05)
    assert found.verdict.knowledge.state == "good"
    assert any("as whole numbers" in note for note in found.diagnostics.notes)


@pytest.mark.slow
def test_many_at_a_bound_are_said_of_the_slope():
    """Most have none, of whom the first wide bin makes one or two."""
    heaped = np.asarray([0.7, 0, 0, 0, 0.06, 0.06, 0.06, 0.06, 0.06])
    found = fit_of(["3", "5"], 10**6, heaped)
    assert "coefficient[children]" in found.verdict.knowledge.reasons[0]


@pytest.mark.parametrize("place", [0, 1])
def test_the_interval_of_a_mean_holds_the_truth_at_either_end_of_the_bins(place):
    """Of 1,000 studies without noise on shares but the sampling of 2,000 people."""
    (question,) = study_of(*ON_NUMBERS).questions
    random, shares = np.random.default_rng(1), np.asarray([0.2, 0.3, 0.2, 0.1, 0.1, 0.1])
    truth = shares @ np.asarray([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 8]])[place]
    counts = random.multinomial(2000, shares, size=1000)
    draws = np.stack([random.dirichlet(one + 0.5, size=200) for one in counts])
    found = over_all_laws(question, mechanism_for(question), {"shares": draws}, {})["mean[children]"]
    low, high = np.quantile(found, [0.05, 0.95], axis=1)
    # Four sds of what 1,000 studies show of 90 %.
    assert abs(np.mean((low <= truth) & (truth <= high)) - 0.9) < 4 * np.sqrt(0.09 / 1000)


def test_sds_reach_what_laws_of_few_places_reach():
    """Of laws with all of each bin at one of nine places, or half of it at each end; bins with gaps too."""
    random = np.random.default_rng(2)
    for bins in (
        Bins(np.asarray([0.0, 1, 2]), np.asarray([1.0, 2, 8])),
        Bins(np.asarray([0.0, 1, 4]), np.asarray([0.0, 2, 8])),
    ):
        places = np.linspace(bins.low, bins.high, 9)
        at = np.stack(np.meshgrid(*places.T, indexing="ij"), axis=-1).reshape(-1, 3)
        for shares in random.dirichlet(np.ones(3), size=20):
            least, largest = sd_bounds(bins, shares)
            tried = np.sqrt(at**2 @ shares - (at @ shares) ** 2)
            split = np.sqrt(_split(bins, at, shares))
            assert least <= tried.min() + 1e-9
            assert largest >= max(tried.max(), split.max()) - 1e-9
            assert tried.min() - least < 0.2
            assert largest - split.max() < 0.2


def _split(bins, at, shares):
    """Variances where each bin has people at both its ends alone, with the means in `at`."""
    square = (bins.low + bins.high) * at - bins.low * bins.high
    return square @ shares - (at @ shares) ** 2


def test_study_check_advises_cuts_between_the_numbers_that_people_say(tmp_path, capsys):
    for cuts, advised in ((ON_NUMBERS, True), (BETWEEN, False)):
        (tmp_path / "study.json").write_text(study_of(*cuts).to_json())
        assert main(["study", "check", str(tmp_path / "study.json")]) == 0
        assert ("0.5 in place of 1" in capsys.readouterr().err) is advised
