"""Features that cannot be normal are remarked on; what they do to logistic coefficients is as documented."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import optimize

from inference.likelihoods.regression.sigmoid import response_moments
from inference.models import model_for
from schemas import Study
from summaries import QuestionSummary, Summary
from tests import studies

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def remarks(means, sds, spread: float = 0.01, template=studies.LOGISTIC):
    """Of draws about these means and sds of two features."""
    study = Study(studies.document(template))
    summary = Summary.empty(study).questions[template["id"]]
    random = np.random.default_rng(1)
    around = lambda middle: middle * np.exp(spread * random.normal(size=(4, 100, 2)))  # noqa: E731
    draws = {"feature_mean": around(np.asarray(means)), "feature_sd": around(np.asarray(sds))}
    draws |= {"intercept": np.zeros((4, 100)), "coefficients": np.zeros((4, 100, 2)), "sd": np.ones((4, 100))}
    return model_for(study.questions[0], QuestionSummary(0, summary.values, summary.reports)).remarks(draws)


def test_features_crowded_at_a_bound_are_noted():
    assert remarks([0.1, -0.2], [0.3, 0.35]) == ()
    (one,) = remarks([0.1, 0.05], [0.3, 1.0])
    assert "which years cannot be" in one
    (both,) = remarks([-0.96, 0.05], [0.28, 1.0])
    assert "which age, years cannot be" in both
    assert remarks([0.05, 0.05], [1.0, 1.0], spread=0.8) == ()
    # A linear regression does without their law; that records may be clipped is said of it all the same.
    assert not any("cannot be" in one for one in remarks([0.05, 0.05], [1.0, 1.0], template=studies.LINEAR))


def fitted(x, intercept: float, slope: float) -> list[float]:
    """What the model's first two moments say of answers whose features are x, without noise."""
    response = np.tanh((intercept + slope * x) / 2)
    mean, cross = response.mean(), np.mean((x - x.mean()) * response)

    def away(line):
        with jax.enable_x64(True):
            g = np.asarray(response_moments(line[0] + line[1] * x.mean(), line[1] ** 2 * x.var()))
        return [g[0] - mean, g[1] * x.var() * line[1] - cross]

    return list(optimize.root(away, [intercept, slope]).x)


ROW = re.compile(r"^\| (.+?) \| ([−0-9.]+), ([−0-9.]+) \| ([−0-9.]+), ([−0-9.]+) \|$", re.M)
GRID = (np.arange(20_000) + 0.5) / 20_000
FEATURES = {
    "uniform": 2 * GRID - 1,
    "yes/no, half yes": np.repeat([-1.0, 1.0], [1, 1]),
    "yes/no, a tenth yes": np.repeat([-1.0, 1.0], [9, 1]),
    "skewed, 2 Beta(1, 4) − 1": 2 * (1 - (1 - GRID) ** 0.25) - 1,
}


def test_figures_of_guide_on_feature_shapes_are_right():
    """Each row of the table: a law of the feature, intercept and slope, and what is fitted."""
    rows = [row for row in ROW.findall(PAGE.read_text(encoding="utf-8")) if row[0] in FEATURES]
    assert {row[0] for row in rows} == set(FEATURES)
    for name, *numbers in rows:
        intercept, slope, *stated = (float(number.replace("−", "-")) for number in numbers)
        assert fitted(FEATURES[name], intercept, slope) == pytest.approx(stated, abs=0.006), name
