"""What the models make of summaries: units, moments, and odd cases."""

import jax
import numpy as np
import pytest
from numpyro.infer.util import log_density

from inference.models import MODELS, model_for
from inference.models.holder_regression import holder_regression, holder_statistics
from inference.sampling.space import as_arrays
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError
from schemas import Study
from summaries import QuestionSummary, Summary, summarize
from tests import studies
from tests.kit.errors import raises
from tests.kit.reporting import reports_of


@pytest.mark.parametrize(
    ("template", "code"),
    [
        (studies.NORMAL, ("fit.no_likelihood", "weight: 'normal", "gaussian")),
        (studies.YES_NO_RECORD, ("fit.summary_not_exact", "chance:")),
        (studies.choice_of("oue", 10_001, "4"), ("fit.too_many_shares", "10000")),
    ],
)
def test_summary_that_no_model_can_read_is_rejected(template, code, monkeypatch):
    monkeypatch.setattr(MODELS["normal"], "reads", ("laplace",))
    with raises(InputError, code):
        model_for(studies.question_of(template), QuestionSummary(5, np.zeros(10_001, dtype=np.int64)))


def is_finite(models):
    """Whether density and gradient of many models of one question are finite at their starts."""
    program = models[0].program
    joint = lambda sites, data: log_density(program, (), data, sites)[0]  # noqa: E731
    with jax.enable_x64(True):
        compiled = jax.jit(jax.value_and_grad(joint))
        found = [compiled(as_arrays(model.initial, float), as_arrays(model.data)) for model in models]
    return all(np.isfinite(np.ravel(leaf)).all() for leaf in jax.tree.leaves(found))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.05", "20"])
@pytest.mark.parametrize("template", studies.ALL, ids=lambda template: template["id"])
def test_odd_summaries_have_finite_density_and_gradient(template, epsilon):
    """No report, one report, everybody at one bound, and statistics that no real data could have."""
    (question,) = (study := Study(studies.document(studies.with_epsilon(template, epsilon)))).questions
    size = len(Summary.empty(study).questions[question.id].values)
    odd = [(0, np.zeros(size, dtype=np.int64))]
    odd += [(n, n * (np.arange(size) == at)) for at in (0, size // 2, size - 1) for n in (1, 10**9)]
    if question.ask == "record":
        # Indefinite, negative, and of one person only.
        odd += [(n, np.full(size, value)) for n, value in ((1000, -(10**11)), (1000, 10**11), (1, -(10**11)))]
    assert is_finite([model_for(question, QuestionSummary(n, values)) for n, values in odd])


LINE = np.linspace(0.1, 0.9, 400)
TABLES = {
    "fewer records than columns": [{name: values[:1] for name, values in studies.ROWS.items()}],
    "collinear": [{"t": 40 * LINE, "v": 20 + 60 * LINE, "pe": 420 + 80 * LINE**2}],
    "all clipped": [dict.fromkeys(("t", "v", "pe"), np.full(400, 1e6)), studies.ROWS],
    "no holder": [],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism",
    [
        {"name": "table_statistics", "epsilon": "0.01", "delta": "1e-6", "count_share": "0.1"},
        {"name": "table_statistics", "epsilon": "20", "delta": "1e-6"},
        {"name": "table_statistics_laplace", "epsilon": "1"},
    ],
)
@pytest.mark.parametrize("tables", TABLES.values(), ids=TABLES)
def test_odd_tables_have_finite_density_and_gradient(mechanism, tables):
    study = Study(studies.document({**studies.TABLE, "mechanism": mechanism}, **studies.HOLDER))
    summary = summarize(study, reports_of(study, tables)) if tables else Summary.empty(study)
    statistics = holder_statistics(mechanism_for(study.questions[0]), summary.questions["power"])
    assert is_finite([holder_regression(study.questions[0], statistics)])
