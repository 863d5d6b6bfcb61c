"""Only regressions from clipped records have a note; the effect on slopes is as documented."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from inference.models import model_for
from inference.models.base import Fit
from inference.models.holder_regression import holder_regression
from schemas import Study
from summaries import QuestionSummary, Summary
from tests import studies
from tests.inference.holder_tables import statistics_of
from tests.kit.reporting import reduced

QUESTION = {
    "id": "wage",
    "ask": "table",
    "features": [{"id": name, "bounds": ["-1", "1"]} for name in ("a", "b")],
    "norm": "1",
    "response": {"id": "rate", "bounds": ["-1", "1"]},
    "mechanism": {"name": "table_statistics", "epsilon": "8", "delta": "1e-6"},
    "model": {"name": "linear_regression"},
}
WIDE_NORM = {"norm": "1.5"}
SMALL_NORM = {"norm": "0.3"}


def study_of(changes):
    return Study(studies.document(copy.deepcopy(QUESTION) | changes, respondent="holder"))


def records(n, slope, sd=0.3, seed=0):
    """Two features and a response that they explain but for an sd of 0.1."""
    random = np.random.default_rng(seed)
    x = random.normal(0, sd, (n, 2))
    return {"a": x[:, 0], "b": x[:, 1], "rate": slope * x.sum(axis=1) + random.normal(0, 0.1, n)}


CASES = {
    "none": ({}, records(20_000, 0.5), ""),
    "response": ({}, records(20_000, 3.0), "the response's mean and sd"),
    "norm": (SMALL_NORM, records(20_000, 0.5), "the norm 0.3 cuts many records short"),
    "feature": (WIDE_NORM, records(20_000, 0.05, 1.0), "mean and sd of a, b has much beyond the bounds"),
    "too few to tell": ({}, records(10, 3.0), ""),
}


@pytest.mark.parametrize(("changes", "table", "said"), CASES.values(), ids=CASES)
def test_holders_clipped_records_are_noted(changes, table, said):
    study = study_of(changes)
    half = {name: np.array_split(values, 2) for name, values in table.items()}
    statistics = statistics_of(study, [{name: parts[i] for name, parts in half.items()} for i in (0, 1)])
    notes = holder_regression(study.questions[0], statistics).notes
    assert sum("taken to vary by one sd" in note for note in notes) == 1
    notes = [note for note in notes if "skewed" not in note and "one sd" not in note]
    assert len(notes) == bool(said)
    assert all(said in note for note in notes)


@pytest.mark.parametrize("mechanism", [studies.GAUSSIAN, studies.NOISY_RECORD], ids=["summed", "record"])
@pytest.mark.parametrize(("norm", "slope", "said"), [("1", 3.0, "response's"), ("1", 0.3, "")])
def test_peoples_clipped_records_are_noted(mechanism, norm, slope, said):
    question = copy.deepcopy(QUESTION) | {
        "ask": "record",
        "norm": norm,
        "mechanism": {**mechanism, "epsilon": "60"},
    }
    study = Study(studies.document(question))
    (question,) = study.questions
    notes = model_for(question, reduced(question, records(1000, slope))).notes
    assert len(notes) == bool(said)
    assert all(said in note for note in notes)


def remarks(means, sds, spread: float = 0.01, template=studies.LOGISTIC):
    """Of draws about these means and sds of two features."""
    study = Study(studies.document(template))
    summary = Summary.empty(study).questions[template["id"]]
    random = np.random.default_rng(1)
    around = lambda middle: middle * np.exp(spread * random.normal(size=(4, 100, 2)))  # noqa: E731
    draws = {"feature_mean": around(np.asarray(means)), "feature_sd": around(np.asarray(sds))}
    draws |= {"intercept": np.zeros((4, 100)), "coefficients": np.zeros((4, 100, 2)), "sd": np.ones((4, 100))}
    model = model_for(study.questions[0], QuestionSummary(0, summary.values, summary.reports))
    fit = Fit(draws, {}, {}, 0)
    return tuple(finding.text for check in model.checks for finding in check(fit))


def test_features_crowded_at_a_bound_are_noted():
    assert remarks([0.1, -0.2], [0.3, 0.35]) == ()
    (one,) = remarks([0.1, 0.05], [0.3, 1.0])
    assert "which years cannot be" in one
    (both,) = remarks([-0.96, 0.05], [0.28, 1.0])
    assert "which age, years cannot be" in both
    assert remarks([0.05, 0.05], [1.0, 1.0], spread=0.8) == ()
    # A linear regression does without their law; that records may be clipped is said of it all the same.
    assert not any("cannot be" in one for one in remarks([0.05, 0.05], [1.0, 1.0], template=studies.LINEAR))
