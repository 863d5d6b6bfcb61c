"""The search for thresholds weighs projection's bias against the noise that it saves."""

from math import sqrt

import numpy as np
import pytest

from inference.projection import thresholds
from inference.projection.thresholds import (
    MOST_BIAS,
    Auxiliary,
    Projection,
    data_sets,
    find_thresholds,
)


def central_noise(sigma=4.22):
    """Noise of a secure sum at ε = 1, δ = 1e-6: σ/Δ times the sensitivity of svec(vvᵀ), √8 R²."""
    return lambda norm: sigma * sqrt(8) * norm**2


def expected_error(d, n, noise, projection):
    """The error of a given projection on the search's auxiliary data."""
    feature, response, norm = projection
    return np.mean([data.errors(feature, norm, [response], [noise(norm)]) for data in data_sets(d, n, 0)])


@pytest.mark.slow
def test_projection_beats_bounds_that_are_too_wide():
    """Bounds of 3 sd made 5 times too wide, one round with the whole ε, against 80 % of it."""
    d, n, wide = 5, 2000, 5
    found = find_thresholds(d, n, central_noise(4.22 / 0.8))
    assumed = expected_error(d, n, central_noise(), Projection(3.0 * wide, 3.0 * wide, sqrt(d)))
    assert found.error < assumed / 4


@pytest.mark.slow
def test_projection_alone_is_a_small_part_of_the_error(monkeypatch):
    """Intervals that ignore projection are therefore nearly right; each side is tested alone."""
    found = find_thresholds(3, 20_000, central_noise())
    feature, response, norm = found.projection
    silent = lambda _norm: 0.0  # noqa: E731
    least = expected_error(3, 20_000, silent, Projection(50.0, 50.0, 50.0 * sqrt(3)))
    for side in (Projection(feature, 50.0, norm), Projection(50.0, response, 50.0 * sqrt(3))):
        assert expected_error(3, 20_000, silent, side) - least <= MOST_BIAS * found.error
    monkeypatch.setattr(thresholds, "MOST_BIAS", np.inf)
    greedy = find_thresholds(3, 20_000, central_noise())
    assert greedy.error < found.error
    assert greedy.projection.response < response


def test_projection_shrinks_slopes_as_theory_says():
    """d = 1, only x clipped at c: E[clip(x) x] / E[clip(x)²] by Stein's lemma is P(|x| < c) over that."""
    x = np.random.default_rng(4).normal(size=(10**6, 1))
    factor = 0.6827 / np.mean(np.clip(x, -1, 1) ** 2)
    data = Auxiliary(x, 0.8 * x[:, 0], np.array([0.8]), 10**6, np.zeros((3, 3)))
    found = data.estimates(1.0, 1.0, [50.0], [0.0])[0, 1, 0]
    assert found == pytest.approx(factor * 0.8, rel=0.005)
