"""The study of false reports, in small: sets hold the truth under every attack unless they think of fewer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from benchmarks.false_reports import ALLOWED, SKEWED, choice_case, measured, number_case
from inference.fitting import fit
from schemas import Study
from summaries import QuestionSummary, Summary
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


@pytest.mark.slow
def test_study_posterior_matches_a_fit():
    case = CASES["oue"]()
    counts = np.random.default_rng(1).multinomial(case.n, case.shares @ case.law)
    asked = {"id": "q", "ask": "choice", "choices": list(case.question.choices)}
    asked |= {"mechanism": {"name": "oue", "epsilon": "1"}, "model": {"name": "multinomial"}}
    head = {"format": "ldpkit.study/1", "id": "false", "version": 1, "title": "False reports"}
    study = Study({**head, "questions": [asked]})
    summary = Summary(study.id, study.version, study.digest, {"q": QuestionSummary(case.n, counts)})
    row = fit(study, summary, method="gaussian_approx")["q"].rows()["p[c0]"]
    low, high = (float(end[0]) for end in case.likely(counts[None].astype(float)))
    assert abs(row["q05"] - low) < 0.1 * (high - low)
    assert abs(row["q95"] - high) < 0.1 * (high - low)
