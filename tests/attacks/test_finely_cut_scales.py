"""A scale has many levels: the more it has, the more strongly its prior places people in the middle."""

from __future__ import annotations

import numpy as np
import pytest

from inference.fitting import fit
from ldpkit import ask
from summaries import QuestionSummary, Summary

LEVELS = [f"level {i}" for i in range(1, 11)]
SHARES = 0.5 ** np.arange(10) / np.sum(0.5 ** np.arange(10))
PLACE = float(SHARES @ np.arange(1, 11))


def fitted(build, people, **own):
    """Ten levels at ε = 1, of reports as many as are expected."""
    study = ask.study(
        "tired", "Tired", [build("tired", LEVELS, epsilon=1, mechanism="randomized_response", **own)]
    )
    channel = (np.ones((10, 10)) + (np.e - 1) * np.eye(10)) / (np.e + 9)
    counts = np.rint(people * SHARES @ channel).astype(np.int64)
    part = QuestionSummary(int(counts.sum()), counts)
    summary = Summary(study.id, study.version, study.digest, {"tired": part})
    return fit(study, summary, draws=500, chains=2)["tired"]


@pytest.mark.parametrize("people", [500, 2_000])
def test_prior_of_a_fine_scale_does_not_pull_to_the_middle(people):
    """With 500 people the mean place 2 used to be estimated as 2.6 to 4.2 without a warning."""
    found = fitted(ask.scale, people)
    low, high = found["mean_place"].interval(0.9)
    assert low < PLACE < high


@pytest.mark.parametrize("build", [ask.scale, ask.choice])
def test_prior_that_moved_shares_is_reported(build):
    """A prior weight of one answer per level moves the first share from a half to a third."""
    prior = {"p": {"distribution": "dirichlet", "concentration": "1"}}
    informativeness = fitted(build, 500, prior=prior).verdict.informativeness
    assert informativeness.state == "partial"
    assert "the prior has moved p[level 1]" in informativeness.reasons[-1]
    assert ("at_most[level 1]" in informativeness.reasons[-1]) is (build is ask.scale)


def test_prior_of_little_weight_is_not_reported():
    assert fitted(ask.choice, 40_000).verdict.ok
