"""Tries to have a uniform prior in wrong units pass: it rules the truth out, and nothing contradicts it.

Defence: The analyst's fit: a note where the posterior is pressed against an end. Known limit: the verdict
stays good.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from inference import fit
from inference.results.prior_notes import leaning_notes
from schemas import Study
from tests import studies
from tests.attacks.test_laws_at_bounds import LOCAL, local, summary_of

UNIFORM = {"distribution": "uniform", "low": "20", "high": "30"}


def posterior(estimate, error, random):
    """Draws (4, 1000) of a mean under the uniform prior, given an estimate and its standard error."""
    ends = (np.array([20.0, 30.0]) - estimate) / error
    return stats.truncnorm.rvs(*ends, estimate, error, size=(4, 1000), random_state=random)


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.05, 0.5, 2.0])
def test_allowed_truths_are_rarely_noted_as_ruled_out(error):
    """The allowed rate is 2 % times the standard error in widths of the prior, over 400 truths each."""
    random = np.random.default_rng(1)
    alarms = 0
    for truth in random.uniform(20, 30, 400):
        draws = posterior(random.normal(truth, error), error, random)
        alarms += bool(leaning_notes({"mean": draws}, {"mean": UNIFORM}))
    assert stats.binomtest(alarms, 400, 0.02 * error / 10, alternative="greater").pvalue > 1e-6


@pytest.mark.parametrize("name", ["mean[a]", "coefficient[a]"])
@pytest.mark.parametrize("estimate", [33.0, 16.0])
def test_truth_outside_prior_is_noted(name, estimate):
    draws = posterior(estimate, 0.8, np.random.default_rng(1))
    key = {"mean[a]": "mean", "coefficient[a]": "coefficients"}[name]
    (note,) = leaning_notes({name: draws}, {key: {"a": UNIFORM}})
    assert f"{name} is pressed against an end" in note


@pytest.mark.slow
@pytest.mark.parametrize(("truth", "said"), [(40.0, True), (26.0, False)])
def test_fit_notes_mean_of_40_under_prior_from_20_to_30(truth, said):
    model = {"name": "normal", "prior": {"mean": UNIFORM}}
    study, random = Study(studies.document({**LOCAL, "model": model})), np.random.default_rng(1)
    part = local(study.questions[0], np.clip(random.normal(truth, 4, 1000), 0, 50), random)
    found = fit(study, summary_of(study, part), method="gaussian_approx")[study.questions[0].id]
    assert any("pressed against an end" in note for note in found.diagnostics.notes) == said
