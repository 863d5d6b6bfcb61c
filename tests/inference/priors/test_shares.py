"""Shares in the coordinates that samplers use: the law of a Dirichlet of any concentration, finite."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import Dirichlet
from scipy import stats

from inference.priors.shares import ShareSticks, coordinates_of, shares_of
from tests.statistics import FALSE_ALARM

CONCENTRATION = np.array([0.3, 0.02, 1.5, 0.7])


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.slow
def test_density_matches_the_dirichlet():
    law = ShareSticks(CONCENTRATION)
    for y in np.random.default_rng(0).normal(0, 1.5, (4, 3)):
        shares = shares_of(jnp.asarray(y))
        turn = jnp.linalg.slogdet(jax.jacobian(shares_of)(y)[:-1])[1]
        expected = Dirichlet(CONCENTRATION).log_prob(shares) + turn
        assert float(law.log_prob(y)) == pytest.approx(float(expected), rel=1e-9)
        assert coordinates_of(jnp.log(shares)) == pytest.approx(y, abs=1e-8)


@pytest.mark.slow
def test_draws_follow_the_law():
    shares = np.asarray(shares_of(ShareSticks(CONCENTRATION).sample(jax.random.key(1), (4000,))))
    for j, own in enumerate(CONCENTRATION):
        marginal = stats.beta(own, CONCENTRATION.sum() - own)
        # Below this a share is none: floats cannot tell, and the law's own function underflows.
        some = shares[:, j] > 1e-9
        assert stats.binomtest(int(some.sum()), 4000, marginal.sf(1e-9)).pvalue > FALSE_ALARM
        found = marginal.cdf(shares[some, j]), marginal.cdf(1e-9)
        assert stats.kstest((found[0] - found[1]) / (1 - found[1]), "uniform").pvalue > FALSE_ALARM
