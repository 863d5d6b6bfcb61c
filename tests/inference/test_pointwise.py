"""The log-likelihood of single reports, for comparisons of models by ArviZ."""

from typing import Any

import arviz_stats
import jax
import numpy as np
import pytest

from inference import fit, summarize
from inference.models import model_for
from inference.models.base import Model
from inference.pointwise import log_likelihood
from inference.sampling.space import as_arrays, reports_site
from schemas import Study
from summaries import Summary
from tests import studies
from tests.kit.reporting import reports_of


def model_of(document: dict[str, Any], answers: list[Any]) -> Model:
    """Return the model of reports of these answers to a study's only question."""
    (question,) = (study := Study(document)).questions
    return model_for(question, summarize(study, reports_of(study, answers)).questions[question.id])


def log_density(model: Model, draw: dict[str, Any]) -> float:
    """Return the log-likelihood of all reports at one draw, with its combinatorial constant."""
    with jax.enable_x64(True):
        site = reports_site(model, draw, as_arrays(model.data))
        return float(site["fn"].log_prob(site["value"]))


CASES = {
    "randomized_response": (studies.document(studies.YES_NO), [True, False, False] * 20, {"p": [0.2, 0.7]}),
    "patterns": (
        studies.document({**studies.ONE_OF, "mechanism": {"name": "oue", "epsilon": "1"}}),
        [*studies.ONE_OF["choices"]] * 10,
        {"p": np.random.default_rng(1).dirichlet(np.ones(len(studies.ONE_OF["choices"])), 2)},
    ),
    "number": (
        studies.document(studies.NUMBER),
        list(np.linspace(0, 1, 40)),
        {"mean": [0.2, 0.6], "sd": [0.1, 0.3]},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_single_reports_add_up_to_the_likelihood_of_all(name: str) -> None:
    """Between two draws, the sum over reports changes as the log-likelihood of all reports does."""
    document, answers, sites = CASES[name]
    model = model_of(document, answers)
    found = log_likelihood(model, {site: np.asarray(values)[:, None] for site, values in sites.items()})
    assert found is not None
    assert found.shape == (2, 1, len(answers))
    first, second = ({site: values[i] for site, values in sites.items()} for i in (0, 1))
    expected = log_density(model, second) - log_density(model, first)
    assert found.sum(axis=2)[1, 0] - found.sum(axis=2)[0, 0] == pytest.approx(expected)


def test_sums_and_very_many_reports_have_no_single_log_likelihoods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Very many would not fit into memory."""
    (question,) = (study := Study(studies.document(studies.LINEAR))).questions
    sums = model_for(question, Summary.empty(study).questions[question.id])
    draws = {name: np.asarray(at)[None, None] for name, at in sums.initial.items()}
    assert log_likelihood(sums, draws) is None
    document, answers, _ = CASES["randomized_response"]
    monkeypatch.setattr("inference.pointwise.MOST_ENTRIES", 2 * len(answers) - 1)
    assert log_likelihood(model_of(document, answers), {"p": np.asarray([[0.2], [0.7]])}) is None


def test_a_fit_is_compared_by_arviz() -> None:
    study = Study(studies.document(studies.YES_NO))
    answers = (np.random.default_rng(2).random(300) < 0.3).tolist()
    loo = arviz_stats.loo(fit(study, reports_of(study, answers), draws=200)["ever"].to_arviz())
    assert 0 < loo.p < 3
    assert loo.n_data_points == 300
