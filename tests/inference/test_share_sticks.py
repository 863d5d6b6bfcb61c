"""Shares in the coordinates that samplers use: the law of a Dirichlet of any concentration, finite."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpyro.distributions import Dirichlet
from scipy import stats
from scipy.special import betaln

from inference.models import model_for
from inference.priors.shares import ShareSticks, coordinates_of, shares_of
from inference.results.convergence import mixing
from inference.sampling import sample
from ldp_client import mechanism_for
from summaries import QuestionSummary
from tests.inference.sparse_shares import question_of
from tests.statistics import FALSE_ALARM

CONCENTRATION = np.array([0.3, 0.02, 1.5, 0.7])
UNKNOWN = {"distribution": "log_normal", "loc": "-1", "scale": "1"}


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


def exact_moments(counts, p: float, q: float):
    """Mean and sd of the first of two shares and of the concentration, by quadrature over both."""
    logs = np.linspace(-8, 6, 281)
    x = np.linspace(-60, 60, 6001)
    share = 1 / (1 + np.exp(-x))
    c = np.exp(logs)[:, None]
    seen = q + (p - q) * share
    # In the logit of the share, whose ends are no singularities.
    log_density = c * (-np.logaddexp(0, -x) - np.logaddexp(0, x))
    log_density = log_density - betaln(c, c) + counts[0] * np.log(seen) + counts[1] * np.log1p(-seen)
    weight = np.exp(log_density - log_density.max()) * stats.norm(-1, 1).pdf(logs)[:, None]
    weight /= weight.sum()
    moments = []
    for value in (np.broadcast_to(share, weight.shape), np.broadcast_to(np.log(c), weight.shape)):
        mean = np.sum(weight * value)
        moments.append((mean, np.sqrt(np.sum(weight * (value - mean) ** 2))))
    return moments


@pytest.mark.slow
@pytest.mark.parametrize("counts", [(40, 20)])
def test_posterior_of_two_choices_matches_exact_moments(counts):
    question = question_of(2, UNKNOWN)
    model = model_for(question, QuestionSummary(sum(counts), np.asarray(counts)))
    found = model.parameters(sample(model, seed=2, kept=2000).sites)
    mechanism = mechanism_for(question)
    names = list(found)
    assert names[2:] == ["concentration"]
    draws = [found[names[0]], np.log(found["concentration"])]
    p = float(mechanism.p)
    for own, (mean, sd) in zip(draws, exact_moments(counts, p, 1 - p), strict=True):
        ess = mixing({"x": own}).ess_bulk["x"]
        assert ess > 400
        assert own.mean() == pytest.approx(mean, abs=5 * sd / np.sqrt(ess))
        assert own.std() == pytest.approx(sd, rel=0.1)
