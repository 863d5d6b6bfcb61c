"""Notes that compare a posterior with its prior: drowned, contradicting, or none."""

import numpy as np
import pytest
from scipy import stats

from inference.results.prior_notes import disagreements, informativeness, leaning_notes
from inference.results.verdict import NOT_USABLE


@pytest.mark.parametrize(
    ("mean", "sd", "says"),
    [
        (0, 10, []),
        (0, 1.1, ["drowns the signal of x"]),
        (0.8, 1.1, ["drowns the signal of x"]),
        (2, 1.1, ["holds x back"]),
        (2, 1.4, []),
        (4, 1.1, ["disagree about x", "holds x back"]),
        (-4, 1.4, ["disagree about x"]),
        (4, 0.5, ["contradicts the reports: for x", "holds x back"]),
        (-4, 0.1, ["contradicts the reports: for x", "holds x back"]),
    ],
)
def test_notes_compare_posterior_with_prior(mean, sd, says):
    random = np.random.default_rng(1)
    draws, prior = {"x": random.normal(size=(4, 1000))}, {"x": random.normal(mean, sd, size=1000)}
    notes = [*disagreements(draws, prior), *informativeness(draws, prior)]
    assert [part in note.text for part, note in zip(says, notes, strict=True)] == [True] * len(says)


def test_truths_from_the_prior_rarely_contradict_it():
    """Of 4,000 truths that are known exactly at most a few, though the prior's tail is long."""
    random, alarms = np.random.default_rng(5), 0
    for truth in random.lognormal(size=4000):
        draws, prior = {"x": truth + 1e-3 * random.normal(size=(4, 20))}, {"x": random.lognormal(size=1000)}
        alarms += any(one.state == NOT_USABLE for one in disagreements(draws, prior))
    assert alarms < 15


UNIFORM = {"distribution": "uniform", "low": "20", "high": "30"}


@pytest.mark.attack(18)
@pytest.mark.parametrize(("name", "estimate"), [("mean[a]", 33.0), ("coefficient[a]", 16.0)])
def test_truth_outside_prior_is_noted(name, estimate):
    """State a uniform prior in wrong units, which rules the truth out."""
    ends = (np.array([20.0, 30.0]) - estimate) / 0.8
    draws = stats.truncnorm.rvs(*ends, estimate, 0.8, size=(4, 1000), random_state=1)
    key = {"mean[a]": "mean", "coefficient[a]": "coefficients"}[name]
    (note,) = leaning_notes({name: draws}, {key: {"a": UNIFORM}})
    assert f"{name} is pressed against an end" in note.text
