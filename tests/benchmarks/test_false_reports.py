"""The study of false reports, in small: sets hold the truth under every attack unless they think of fewer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.false_reports import ALLOWED, SKEWED, choice_case, measured, number_case
from tests.statistics import FALSE_ALARM

RUNS, SHARE = 60, 0.01
CASES = {
    "oue": lambda: choice_case("oue", "1", SKEWED, 100_000),
    "laplace": lambda: number_case({"name": "laplace", "epsilon": "1"}, np.linspace(0, 0.6, 50), 100_000),
}


def holds(found) -> bool:
    """Whether so many runs may hold the truth where 90 % do."""
    return bool(stats.binom.cdf(round(found.coverage * RUNS), RUNS, 0.9) > FALSE_ALARM)


@pytest.mark.parametrize("name", CASES)
def test_sets_hold_truth_unless_false_reports_are_underestimated(name):
    case = CASES[name]()
    found = dict(measured(case, SHARE, RUNS, seed=2))
    assert all(holds(one) for one in found.values())
    assert all(one.width <= ALLOWED for one in found.values())
    fewer = replace(case, bounds=lambda counts, share: case.bounds(counts, share / 4))
    assert not all(holds(one) for one in dict(measured(fewer, SHARE, RUNS, seed=2)).values())
