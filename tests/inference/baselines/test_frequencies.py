"""The unbiased estimator is unbiased, and its corrections match their papers."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.baselines.simplex import PROJECTIONS, norm_sub
from benchmarks.baselines.unbiased import unbiased_frequencies, unbiased_sd
from tests.statistics import FALSE_ALARM

TRUE = np.array([0.6, 0.3, 0.1])
ESTIMATES = np.random.default_rng(1).normal(0.2, 0.4, (200, 5))
P, Q = 0.5, 0.2
N = 400


def simulated_estimates(random, repeats, people=N, truth=TRUE):
    """Estimates from unary reports of people whose answers have exactly the true shares."""
    made = np.round(people * truth).astype(int)
    counts = random.binomial(made, P, (repeats, len(truth))) + random.binomial(
        people - made, Q, (repeats, len(truth))
    )
    return unbiased_frequencies(counts, people, P, Q)


def test_estimator_is_unbiased_with_stated_spread():
    found = simulated_estimates(np.random.default_rng(2), 20_000)
    sd = unbiased_sd(TRUE, N, P, Q)
    limit = stats.norm.isf(FALSE_ALARM / 2)
    assert np.abs(found.mean(0) - TRUE) / sd * np.sqrt(20_000) == pytest.approx(0, abs=limit)
    assert found.var(0) / sd**2 == pytest.approx(1, abs=limit * np.sqrt(2 / 20_000))


def test_estimate_without_reports_is_rejected():
    with pytest.raises(ValueError, match="at least 1"):
        unbiased_frequencies([0, 0], 0, P, Q)


def test_norm_sub_shifts_all_positive_shares_equally():
    """The conditions that only the projection meets (Duchi et al. 2008)."""
    found = norm_sub(ESTIMATES)
    taken = ESTIMATES - found
    shift = np.max(np.where(found > 0, taken, -np.inf), -1, keepdims=True)
    assert np.allclose(np.where(found > 0, taken - shift, 0), 0)
    assert (np.where(found == 0, ESTIMATES - shift, 0) <= 1e-12).all()


@pytest.mark.parametrize("name", PROJECTIONS)
def test_projections_sum_to_one_and_leave_the_simplex_alone(name):
    project = PROJECTIONS[name]
    assert project(ESTIMATES).sum(-1) == pytest.approx(1)
    assert project(TRUE) == pytest.approx(TRUE)
    if name != "norm":
        assert (project(ESTIMATES) >= 0).all()
