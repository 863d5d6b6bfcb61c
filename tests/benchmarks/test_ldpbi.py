"""The experiments run on tiny cases; what they rest on is right."""

import numpy as np
import pytest

from benchmarks.ldpbi import data, figure_3, regressions, surveys
from benchmarks.ldpbi.__main__ import FIGURES
from benchmarks.ldpbi.calibration import coverage, uniformity
from benchmarks.ldpbi.figure_5 import auc
from ldp_client import mechanism_for
from summaries.reductions.choice import pattern_bits

RANDOM = np.random.default_rng(20261121)


def test_every_figure_has_a_module():
    for name in FIGURES:
        module = __import__(f"benchmarks.ldpbi.figure_{name}", fromlist=["run"])
        assert callable(module.run)


def test_missing_data_error_names_download(monkeypatch, tmp_path):
    monkeypatch.setenv("LDPKIT_DATA", str(tmp_path))
    with pytest.raises(SystemExit, match=r"wine_red.csv.gz is not in .*archive.ics.uci.edu.*LDPKIT_DATA"):
        data.wine()


def test_simulated_unary_reports_have_the_mechanisms_means():
    question = surveys.choice_study(3, 1.0).questions[0]
    mechanism = mechanism_for(question)
    made = np.array([300_000, 200_000, 0])
    found = surveys.choice_summary(question, made, RANDOM)
    p, q = float(mechanism.p), float(mechanism.q)
    mean = q * found.n + (p - q) * made
    sd = np.sqrt(made * p * (1 - p) + (found.n - made) * q * (1 - q))
    assert np.abs(found.values @ pattern_bits(3) - mean) / sd == pytest.approx(0, abs=5)
    assert found.values.sum() == found.n


def test_simulated_numbers_spread_as_laplace_noise_does():
    question = surveys.number_study("normal", 2.0).questions[0]
    found = surveys.number_summary(question, np.full(200_000, 0.5), RANDOM)
    beyond = np.exp(-1.0) / 2
    shares = found.values[[0, -1]] / found.n
    assert shares == pytest.approx(beyond, abs=5 * np.sqrt(beyond / 200_000))


def test_simulated_records_sum_to_the_clipped_moments():
    question = surveys.record_study(2, 64.0, "linear_regression").questions[0]
    x, y = RANDOM.uniform(-1, 1, (400_000, 2)), RANDOM.uniform(-1, 1, 400_000)
    mechanism = mechanism_for(question)
    found = surveys.record_summary(question, x, y, RANDOM)
    shrink = np.maximum(np.linalg.norm(x, axis=1), 1)
    place = mechanism.coordinates.index((1, 1))
    expected = np.sum((x[:, 0] / shrink) ** 2)
    limit = 5 * np.sqrt(found.n) * mechanism.noise_sd
    assert found.values[place] / mechanism.grid == pytest.approx(expected, abs=limit)
    assert expected > 5 * limit


def test_posterior_means_match_dirichlet_at_small_noise():
    """Unary encoding always has noise on the true bit; at ε = 20, no other bit is set."""
    question = surveys.choice_study(3, 20.0).questions[0]
    made = np.array([40, 30, 10])
    counts = np.zeros((1, 8), dtype=np.int64)
    counts[0, [1, 2, 4]] = made
    (found,) = figure_3.posterior_means(counts, mechanism_for(question), figure_3.simplex_grid(120))
    assert found == pytest.approx((made + 1) / (made + 1).sum(), abs=1e-3)


def test_posterior_mean_beats_least_squares_in_the_papers_case():
    grid = figure_3.simplex_grid(60)
    found = figure_3.errors((0.7, 0.2, 0.1), 0.5, 300, 200, grid)
    assert found["posterior mean"] < 0.9 * found["norm-sub"]
    assert found["norm-sub"] < found["norm"] < found["unbiased"]


def test_components_are_uncorrelated_and_scaled():
    scores = regressions.principal_components(RANDOM.normal(size=(500, 6)) @ RANDOM.normal(size=(6, 6)), 3)
    covariance = np.cov(scores.T)
    assert covariance - np.diag(np.diag(covariance)) == pytest.approx(0, abs=1e-12)
    assert np.mean(np.linalg.norm(scores, axis=1) <= 1) == pytest.approx(0.9, abs=0.01)


def test_splits_share_no_record():
    x = np.arange(50.0)[:, None]
    for part in regressions.splits(x, x[:, 0], 3):
        assert sorted([*part.y, *part.test_y]) == list(range(50))
        assert len(part.test_y) == 10
        assert (part.x[:, 0] == part.y).all()


def test_auc_counts_pairs():
    x = RANDOM.normal(size=(200, 1))
    y = np.where(RANDOM.random(200) < 0.4, 1.0, -1.0)
    part = regressions.Split(x, y, x, y)
    pairs = x[y > 0, 0][:, None] > x[y < 0, 0][None, :]
    assert auc(np.array([0.3, 2.0]), part) == pytest.approx(pairs.mean())


def test_calibration_measures_tell_uniform_from_crowded():
    ranks = (np.arange(1000) + 0.5) / 1000
    assert coverage(ranks) == pytest.approx(np.linspace(0.1, 0.9, 9), abs=0.002)
    assert uniformity(ranks) > 0.99
    assert uniformity(ranks**3) < 1e-6
