"""The Gaussian approximation matches the exact posterior, or is reported as poor."""

import numpy as np
import pytest
from scipy import stats

from inference.models import model_for
from inference.sampling.gaussian_approximation import (
    DEGREES_OF_FREEDOM,
    draw,
    propose,
    resample,
    weigh,
)
from tests import studies
from tests.kit.reporting import reduced


@pytest.mark.parametrize(("width", "good"), [(1.0, True), (1.1, True), (2.5, False), (0.05, False)])
def test_weights_detect_a_wrong_width(width, good):
    x = np.random.default_rng(1).normal(size=4000)
    weights = weigh(stats.norm(0, width).logpdf(x) - stats.norm(0, 1).logpdf(x))
    assert weights.good == good
    if good:
        found = x[resample(weights, 3, 4, 4000)]
        assert found.std() == pytest.approx(width, rel=0.06)
        assert len(found) % 4 == 0


def test_weights_are_poor_for_nan_or_infinite_ratios():
    assert not weigh(np.asarray([0.0, np.nan] * 2000)).good
    ratios = np.random.default_rng(1).normal(size=4000) / 10
    ratios[7] = -np.inf
    assert weigh(ratios).good
    assert weigh(ratios).values[7] == 0
    ratios[7] = np.inf
    assert not weigh(ratios).good


@pytest.mark.parametrize("dimension", [1, 40])
def test_proposal_draws_have_their_stated_density(dimension):
    white, log_density = propose(320, dimension, seed=1)
    parts = [
        stats.multivariate_normal(np.zeros(dimension)).logpdf(white),
        stats.multivariate_t(np.zeros(dimension), df=DEGREES_OF_FREEDOM).logpdf(white),
    ]
    exact = np.logaddexp(parts[0] + np.log(2 / 3), parts[1] + np.log(1 / 3))
    assert log_density - dimension / 2 * np.log(2 * np.pi) == pytest.approx(exact)
    # And as many of each.
    if dimension == 1:
        law, _ = propose(40_000, 1, seed=2)
        expected = (2 * stats.norm.cdf(-1.7) * 2 + 2 * stats.t(DEGREES_OF_FREEDOM).cdf(-1.7)) / 3
        assert np.mean(np.abs(law) > 1.7) == pytest.approx(expected, abs=0.006)


@pytest.mark.slow
def test_laplace_on_a_long_ridge_is_never_ok():
    """Hours of 0 to 168 with answers near 12: plain Gaussian draws were ok in one seed of four."""
    question = {**studies.AGE, "bounds": ["0", "168"]}
    question = studies.question_of(studies.with_epsilon(question, "1"))
    answers = np.clip(np.random.default_rng(1).normal(12, 5, 5000), 0, 168)
    model = model_for(question, reduced(question, answers))
    assert [seed for seed in (3, 4) if not draw(model, seed).reasons] == []
