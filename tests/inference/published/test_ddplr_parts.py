"""Parts of the kernels against brute force, statistics that methods reject, and hard statistics."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy import stats

from benchmarks.papers import METHODS
from inference.likelihoods.holders.statistics import exact
from inference.published import mcmc_normalx, method_named
from inference.published.conjugate import bartlett, default_prior
from inference.published.mcmc_fixeds import released

RANDOM = np.random.default_rng(20261122)
NAMES = ("ada_ssp", "bayes_fixeds_fast", "mcmc_bs", "mcmc_fixeds", "mcmc_normalx")


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def noisy(holders=2, features=2, rows=50, sd=1.0, intercept=False):
    """Statistics of normal records with equal Gaussian noise on every entry."""
    tables = [(RANDOM.normal(size=(rows, features)), RANDOM.normal(size=rows)) for _ in range(holders)]
    found = exact(tables, intercept)
    noise = np.full(found.noise.shape, sd)
    errors = np.triu(RANDOM.normal(size=found.sums.shape)) * sd
    errors += np.triu(errors, 1).transpose(0, 2, 1)
    if intercept:
        noise[0, 0] = errors[:, 0, 0] = 0
    return replace(found, sums=found.sums + errors, noise=noise)


def test_proposal_ratio_matches_wishart_densities():
    size, freedom = 3, 11.5
    shape = np.asarray(bartlett(jax.random.key(3), freedom, size))
    now = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, -0.3], [0.1, -0.3, 1.5]])
    factor = np.linalg.cholesky(now) @ shape / np.sqrt(freedom)
    then = factor @ factor.T
    expected = stats.wishart(freedom, then / freedom).logpdf(now) - stats.wishart(
        freedom, now / freedom
    ).logpdf(then)
    found = mcmc_normalx.log_proposals(shape[None], np.array([freedom]))
    assert found[0] == pytest.approx(expected)
    assert abs(expected) > 0.01


@pytest.mark.slow
def test_scatter_density_is_wishart_times_released_density():
    data = released(noisy(holders=1, intercept=True), default_prior(3, 2))
    state = mcmc_normalx.KERNEL.init(jax.random.key(1), data)

    def log_density(scatter):
        gram = np.asarray(mcmc_normalx.grams(scatter[None], state.latent.means, data))[0]
        noise = np.triu_indices(3)
        keep = np.array(noise).sum(0) > 0
        entries = stats.norm(gram[noise][keep], 1).logpdf(np.asarray(data.gram[0])[noise][keep]).sum()
        covariance = state.variance * gram + np.eye(3)
        cross = stats.multivariate_normal(gram @ state.theta, covariance).logpdf(data.cross[0])
        return stats.wishart(49, np.asarray(state.latent.covariance)).logpdf(scatter) + entries + cross

    def found(scatter):
        factor = np.linalg.cholesky(scatter)
        return mcmc_normalx.log_scatters(scatter[None], factor[None], state, data)[0]

    first, second = np.array([[40.0, 3], [3, 60]]), np.array([[55.0, -5], [-5, 41]])
    assert found(second) - found(first) == pytest.approx(log_density(second) - log_density(first))


@pytest.mark.parametrize("name", NAMES)
def test_methods_reject_unsuitable_statistics(name):
    method, fine = METHODS.get(name) or method_named(name), noisy(features=3)
    assert method.refuses(fine) == ""
    assert method.refuses(replace(fine, law="laplace")) == "needs Gaussian noise, not laplace noise"
    assert "needs statistics with noise" in method.refuses(replace(fine, noise=fine.noise * 0))
    hidden = fine.noise.copy()
    hidden[0, -1] = hidden[-1, 0] = np.inf
    assert method.refuses(replace(fine, noise=hidden)) == "needs all of XᵀX and Xᵀy"
    counted = method.refuses(replace(fine, count_sd=3.0))
    assert ("count_share" in counted) == (name in ("mcmc_bs", "mcmc_normalx"))
    without_squares = fine.noise.copy()
    without_squares[-1, -1] = np.inf
    assert ("yᵀy" in method.refuses(replace(fine, noise=without_squares))) == (name == "mcmc_bs")
    assert ("centred" in method.refuses(noisy(features=3, intercept=True))) == (name == "mcmc_bs")
    few = method.refuses(replace(fine, counts=np.array([50.0, 2.0])))
    assert few == ("needs at least 3 rows of every holder" if name == "mcmc_normalx" else "")
