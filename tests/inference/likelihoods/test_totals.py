"""Sums over devices: the dense normal density of noisy moments."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats

from inference.likelihoods.numbers.totals import noisy_moments


@pytest.mark.parametrize("noise_sd", [0.3, 50.0])
def test_moments_have_the_dense_normal_density(noise_sd):
    """The covariance of (u, 3/2 u²) from four moments; draws have it too."""
    moments, n = np.array([0.3, 0.25, 0.12, 0.11]), 300
    loc = n * np.array([moments[0], 1.5 * moments[1]])
    cross = 1.5 * (moments[2] - moments[0] * moments[1])
    one = [[moments[1] - moments[0] ** 2, cross], [cross, 1.5**2 * (moments[3] - moments[1] ** 2)]]
    dense = stats.multivariate_normal(loc, n * np.array(one) + noise_sd**2 * np.eye(2))
    law = noisy_moments(moments, n, noise_sd, 1.5)
    value = loc + np.array([9.0, -4.0])
    assert law.log_prob(value) == pytest.approx(dense.logpdf(value), rel=1e-12)
    drawn = np.asarray(law.sample(jax.random.key(1), (20_000,)))
    assert np.cov(drawn.T) == pytest.approx(dense.cov, abs=0.05 * dense.cov.max())
