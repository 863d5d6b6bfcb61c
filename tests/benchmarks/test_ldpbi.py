"""The experiments run on tiny cases; what they rest on is right."""

import numpy as np
import pytest

from benchmarks.ldpbi import figure_3, surveys
from ldp_client import mechanism_for
from summaries.reductions.choice import pattern_bits

RANDOM = np.random.default_rng(20261121)


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
