"""Parts of the kernels against brute force, statistics that methods reject, and hard statistics."""

from dataclasses import replace

import jax
import numpy as np
import pytest
from scipy import stats

from benchmarks.papers import METHODS, ada_ssp, mcmc_bs
from inference.likelihoods.holders.statistics import HolderStatistics, exact
from inference.published import mcmc_normalx, method_named
from inference.published.base import Run
from inference.published.conjugate import bartlett, default_prior, inverse_wishart
from inference.published.given_grams import log_cross, nearest_semidefinite, released

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


@pytest.mark.slow
def test_wishart_draws_have_the_right_means():
    keys = jax.random.split(jax.random.key(0), 20_000)
    scatter, freedom, size = np.array([[2.0, 0.7, 0], [0.7, 1, 0.2], [0, 0.2, 3]]), 9.0, 3
    factors = jax.vmap(lambda key: bartlett(key, freedom, size))(keys)
    drawn = factors @ factors.mT
    assert np.mean(drawn, 0) == pytest.approx(freedom * np.eye(3), abs=0.2)
    assert np.var(drawn[:, 0, 0]) == pytest.approx(2 * freedom, rel=0.1)
    inverse = jax.vmap(lambda key: inverse_wishart(key, scatter, freedom))(keys)
    assert np.mean(inverse, 0) == pytest.approx(scatter / (freedom - size - 1), abs=0.03)


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
    state = mcmc_normalx.init(jax.random.key(1), data)

    def log_density(scatter):
        gram = np.asarray(mcmc_normalx.grams(scatter[None], state.means, data))[0]
        noise = np.triu_indices(3)
        keep = np.array(noise).sum(0) > 0
        entries = stats.norm(gram[noise][keep], 1).logpdf(np.asarray(data.gram[0])[noise][keep]).sum()
        covariance = state.variance * gram + np.eye(3)
        cross = stats.multivariate_normal(gram @ state.theta, covariance).logpdf(data.cross[0])
        return stats.wishart(49, np.asarray(state.covariance)).logpdf(scatter) + entries + cross

    def found(scatter):
        factor = np.linalg.cholesky(scatter)
        return mcmc_normalx.log_scatters(scatter[None], factor[None], state, data)[0]

    first, second = np.array([[40.0, 3], [3, 60]]), np.array([[55.0, -5], [-5, 41]])
    assert found(second) - found(first) == pytest.approx(log_density(second) - log_density(first))


def test_cross_products_have_the_dense_normal_density():
    statistics = noisy(holders=3, sd=2.0)
    data = released(statistics, default_prior(2, 2))
    theta, variance = np.array([0.3, -1.0]), 0.4
    gram = np.asarray(nearest_semidefinite(data.gram))
    found = np.asarray(log_cross(gram, theta, variance, data))
    expected = [
        stats.multivariate_normal(s @ theta, variance * s + 4 * np.eye(2)).logpdf(z)
        for s, z in zip(gram, statistics.cross, strict=True)
    ]
    assert found - np.log(2 * np.pi) == pytest.approx(expected)


@pytest.mark.slow
def test_latent_statistics_have_the_published_conditional_law():
    statistics = noisy(holders=1, rows=30, sd=5.0)
    data = released(statistics, default_prior(2, 2))
    state = mcmc_bs.State(np.array([0.5, -0.2]), 0.7, np.array([[1.5, 0.4], [0.4, 0.8]]), np.eye(3))
    moments = mcmc_bs.second_moments(state)
    fourth = np.asarray(mcmc_bs.fourth_moments(moments))
    records = RANDOM.multivariate_normal(np.zeros(3), moments, 400_000)
    i, j = np.triu_indices(3)
    assert fourth == pytest.approx(np.cov((records[:, i] * records[:, j]).T), abs=0.15)
    inverse = np.linalg.inv(30 * fourth)
    covariance = np.linalg.inv(inverse + np.eye(6) / 25)
    mean = covariance @ (inverse @ (30 * np.asarray(moments)[i, j]) + statistics.sums[0][i, j] / 25)
    factor = np.linalg.cholesky(moments)
    draw = jax.vmap(lambda key: mcmc_bs.draw_latent(key, data.sums[0], 30.0, moments, factor, fourth, data))
    drawn = np.asarray(draw(jax.random.split(jax.random.key(0), 50_000)))[:, i, j]
    scale = np.sqrt(np.diag(covariance))
    assert (drawn.mean(0) - mean) / scale == pytest.approx(0, abs=5 / np.sqrt(50_000))
    assert np.cov(drawn.T) / np.outer(scale, scale) == pytest.approx(
        covariance / np.outer(scale, scale), abs=0.05
    )


def test_nearest_semidefinite_only_raises_negative_eigenvalues():
    values, vectors = np.array([-3.0, 1.0, 4.0]), np.linalg.qr(RANDOM.normal(size=(3, 3)))[0]
    found = nearest_semidefinite(vectors @ np.diag(values) @ vectors.T)
    assert found == pytest.approx(vectors @ np.diag([0.0, 1, 4]) @ vectors.T)


def test_ada_ssp_is_ridge_regression_only_under_large_noise():
    quiet = noisy(rows=4000, sd=1e-3)
    expected = np.linalg.solve(quiet.gram.sum(0), quiet.cross.sum(0))
    method, prior = METHODS["ada_ssp"], default_prior(2, 2)
    drawn = method.draw(quiet, prior, Run(0, 1, 3, chains=2))
    assert drawn.sites["theta"].shape == (2, 3, 2)
    assert drawn.sites["theta"][1, 2] == pytest.approx(expected)
    residuals = quiet.squares.sum() - quiet.cross.sum(0) @ expected
    assert drawn.sites["variance"] == pytest.approx(residuals / 8000, rel=1e-5)
    assert "no interval" in drawn.reasons[0]
    loud = noisy(rows=5, sd=30.0)
    assert ada_ssp.ridges(loud) == pytest.approx(30 * np.sqrt(2 * np.log(2 * 4 / 0.05)))
    ridged = loud.gram.sum(0) + 2 * ada_ssp.ridges(loud)[0] * np.eye(2)
    expected = np.linalg.solve(ridged, loud.cross.sum(0))
    assert method.draw(loud, prior, Run(0, 1, 1)).sites["theta"][0, 0] == pytest.approx(expected)


def test_ada_ssp_ridge_uses_lower_bound_of_eigenvalue():
    bound = 30 * np.sqrt(2 * np.log(2 * 4 / 0.05))
    gram = np.diag([bound * 1.5, 1e4])[None]
    sums = np.zeros((1, 3, 3))
    sums[:, :2, :2] = gram
    statistics = HolderStatistics(sums, np.full((3, 3), 30.0), np.array([100.0]))
    assert ada_ssp.ridges(statistics) == pytest.approx(bound / 2)


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
