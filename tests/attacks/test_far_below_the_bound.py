"""With generous bounds, as study.md recommends, a default prior decides the mean, and the fit is ok."""

from __future__ import annotations

import numpy as np

from inference import fit
from inference.design.simulation import simulate
from inference.models.base import Truth
from inference.results.posterior import Posterior
from ldp_client import mechanism_for
from schemas import Study
from summaries import Summary
from tests import studies

PEOPLE = 1000


def fitted(model: str, truth: dict[str, float], epsilon: str, seed: int) -> Posterior:
    """The quick fit of answers of that law in bounds of 0 to 100."""
    asked = {
        **studies.with_epsilon(studies.NUMBER, epsilon),
        "bounds": ["0", "100"],
        "model": {"name": model},
    }
    study = Study(studies.document(asked))
    (question,) = study.questions
    random = np.random.default_rng(seed)
    part = simulate(question, mechanism_for(question), Truth(truth, {}), PEOPLE, random)
    summary = Summary(study.id, study.version, study.digest, {question.id: part})
    return fit(study, summary, method="gaussian_approx", seed=seed)[question.id]


def is_far(posterior: Posterior, name: str, truth: float) -> bool:
    low, high = np.quantile(posterior.draws[name], [0.01, 0.99])
    return not low < truth < high


def test_mean_far_below_the_bound_follows_the_reports():
    """All fits used to be four to seven standard deviations off; by chance one or two are far off."""
    found = [fitted("exponential", {"rate": 1 / 3}, "1", seed) for seed in range(6)]
    assert sum(is_far(one, "rate", 1 / 3) for one in found) <= 2


def test_parameter_dominated_by_the_prior_is_not_called_learnt():
    """The prior of the shape expects about 4: the posterior is as wide as that, and far from the truth."""
    found = fitted("gamma", {"shape": 25, "mean": 50}, "3", 3)
    assert is_far(found, "shape", 25)
    assert found.draws["shape"].std() > 0.8 * found.prior_sd["shape"]
    assert found.verdict.informativeness.state == "partial"
    assert "the prior holds shape back" in found.verdict.reasons[0]
    assert not found.verdict.ok
