"""Whether data holders' lines are alike."""

from __future__ import annotations

import numpy as np
import pytest

from inference import fit
from inference.likelihoods.holders.statistics import HolderStatistics
from inference.models.unlike_holders import Lines, p_value
from inference.results.verdict import FIT
from schemas import Study
from tests import studies
from tests.inference.posteriors import reasons
from tests.kit.reporting import reports_of
from tests.statistics import share_is

LINE, SD, LEVEL = np.array([0.1, 0.5, -0.3]), 0.2, 0.05
STAY = {
    "id": "stay",
    "ask": "table",
    "features": [{"id": "age", "bounds": ["18", "98"]}, {"id": "severity", "bounds": ["0", "10"]}],
    "norm": "1",
    "response": {"id": "days", "bounds": ["0", "40"]},
    "mechanism": {"name": "table_statistics", "epsilon": "1", "delta": "1e-6"},
    "model": {"name": "linear_regression"},
}


# (holders, records of each, scale of the noise, law)
GAUSSIAN, LAPLACE = (6, 1000, 10.0, "gaussian"), (6, 1000, 10.0, "laplace")


def statistics_of(seed, size, baselines=0.0, slopes=0.0, case_mix=0.3):
    """Holders' features always lie elsewhere, and are yes/no as often as not."""
    holders, n, scale, law = size
    random = np.random.default_rng(seed)
    sums = []
    for _ in range(holders):
        x = random.normal(case_mix * random.normal(size=2), 0.3, (n, 2))
        x[:, 1] = np.where(x[:, 1] > 0, 0.5, -0.5)
        line = LINE + np.concatenate([[baselines], [slopes, slopes]]) * random.normal(size=3)
        u = np.column_stack([np.ones(n), x, line[0] + x @ line[1:] + random.normal(0, SD, n)])
        noise = getattr(random, {"gaussian": "normal"}.get(law, law))(0, scale, (4, 4))
        noise[0, 0] = 0
        sums.append(u.T @ u + np.triu(noise) + np.triu(noise, 1).T)
    scales = np.full((4, 4), scale)
    scales[0, 0] = 0
    return HolderStatistics(np.asarray(sums), scales, np.full(holders, float(n)), law, intercept=True)


def p_of(seed, size, **differences):
    theta = np.append(-LINE, 1.0)
    return p_value(statistics_of(seed, size, **differences), Lines(np.outer(theta, theta), SD**2), seed)


@pytest.mark.slow
def test_similar_holders_are_flagged_at_stated_rate():
    """The holders' patients may differ."""
    alarms = sum(p_of(seed, GAUSSIAN) < LEVEL for seed in range(300))
    assert share_is(alarms, 300, LEVEL)


@pytest.mark.attack(18)
@pytest.mark.parametrize("size", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("differences", [{"baselines": 0.2}, {"slopes": 0.6}])
def test_holders_with_different_lines_are_detected(size, differences):
    """Let data holders' baselines or slopes differ under one line."""
    assert sum(p_of(seed, size, **differences) < 1e-3 for seed in range(5)) >= 4


@pytest.mark.attack(18)
@pytest.mark.slow
@pytest.mark.parametrize("baseline_sd", [0.0, 1.0])
def test_hospitals_with_different_baselines_are_detected(baseline_sd):
    """Let hospitals' baselines go with their patients' age, so that one line has twice the slope."""
    study, random = Study(studies.document(STAY, respondent="holder")), np.random.default_rng(3)
    reports = reports_of(study, [hospital(random, baseline_sd) for _ in range(6)])
    found = fit(study, reports, method="gaussian_approx")["stay"]
    differ = any("holders differ" in reason for reason in reasons(found, FIT))
    assert differ == (baseline_sd > 0)


def hospital(random, baseline_sd, n=2000):
    unlike = random.normal()
    age, severity = random.normal(58 + 3 * unlike, 12, n), random.normal(5, 1.5, n)
    days = 2 + baseline_sd * unlike + 0.05 * age + 1.5 * severity + random.normal(0, 3, n)
    return {"age": age, "severity": severity, "days": days}
