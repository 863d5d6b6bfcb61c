"""Answer whole or heaped numbers where a study is cut, so that a smooth law within bins misses them.

Defence: The analysis: shares of bins are reported, and no mean; a note says what the line takes within bins.
`ldpkit check` advises cuts between.
"""

import numpy as np
import pytest
from scipy import stats

from inference.fitting import draw_posterior
from inference.models import model_for
from inference.models.leveled_cells import levels_of
from inference.models.product_cells import cell_probabilities
from ldp_client import mechanism_for
from ldpkit.cli import main
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
    return draw_posterior(study, question, model_for(question, summary), summary.n, 1, "gaussian_approx")


@pytest.mark.slow
def test_whole_numbers_get_bin_shares_and_correct_slope():
    found = fit_of(BETWEEN, 20_000)
    rows = found.rows()
    assert rows["share[children=0.5 to 1.5]"]["mean"] == pytest.approx(POISSON[1], abs=0.02)
    assert "mean[children]" not in rows
    assert rows["coefficient[children]"]["mean"] == pytest.approx(0.5, abs=0.05)
    assert any("takes children as spread smoothly" in note for note in found.diagnostics.notes)


def test_study_check_advises_cuts_between_whole_numbers(tmp_path, capsys):
    for cuts, advised in ((ON_NUMBERS, True), (BETWEEN, False)):
        (tmp_path / "study.json").write_text(study_of(*cuts).to_json())
        assert main(["check", str(tmp_path / "study.json")]) == 0
        assert ("0.5 instead of 1" in capsys.readouterr().err) is advised
