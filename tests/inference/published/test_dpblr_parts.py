"""The steps of DPBLR's samplers against exact sums, dense algebra and quadrature."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published.conjugate import draw_features, draw_regression
from inference.published.gibbs_ss import (
    State,
    draw_first_variances,
    draw_sums,
    draw_variances,
    normal_moments,
    observed,
    record_moments,
    repaired,
)
from tests.inference.published import dpblr_cases as golden
from tests.statistics import FALSE_ALARM

DRAWS = 20_000
LIMIT = 5.0


def near(found: np.ndarray, mean: np.ndarray | float) -> bool:
    """Whether draws (n, …) could have this mean, entry by entry."""
    errors = found.std(axis=0) / np.sqrt(len(found))
    return bool(np.all(np.abs(found.mean(axis=0) - mean) < LIMIT * errors + 1e-12))


@pytest.mark.parametrize("noise", [0.01, 1.0, 30.0])
def test_noise_variance_follows_its_conditional_law(noise: float) -> None:
    scale = 2.0

    def density(variance: float) -> float:
        return float(np.exp(-(noise**2) / (2 * variance) - variance / (2 * scale**2)) / np.sqrt(variance))

    def log_density(log_variance: float) -> float:
        return density(np.exp(log_variance)) * np.exp(log_variance)

    grid = np.linspace(-12, 9, 4001)
    values = np.array([log_density(x) for x in grid])
    cdf = integrate.cumulative_trapezoid(values, grid, initial=0.0)
    with jax.enable_x64(True):
        key = jax.random.key(1)
        drawn = np.asarray(draw_variances(key, jnp.full(DRAWS, noise), jnp.full(DRAWS, scale)))

    def probability(log_variance: np.ndarray) -> np.ndarray:
        return np.interp(log_variance, grid, cdf / cdf[-1])

    assert stats.kstest(np.log(drawn), probability).pvalue > FALSE_ALARM
    assert stats.kstest(np.log(1.2 * drawn), probability).pvalue < FALSE_ALARM


def test_normal_noise_of_the_first_variances_is_laplace() -> None:
    key, other = jax.random.split(jax.random.key(1))
    variances = draw_first_variances(key, jnp.full(DRAWS, 3.0))
    noise = np.asarray(jnp.sqrt(variances) * jax.random.normal(other, (DRAWS,)))
    assert stats.kstest(noise, stats.laplace(scale=3.0).cdf).pvalue > FALSE_ALARM


def test_record_moments_are_exact_for_features_that_are_not_normal() -> None:
    values, shares = np.array([[-1.0, 0.5], [0.2, -0.3], [2.0, 1.0]]), np.array([0.5, 0.3, 0.2])
    theta, variance = np.array([0.3, -1.0, 0.7]), 0.4
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    rows = np.column_stack([np.ones(3), values])
    records, probabilities = [], []
    for (row, share), (node, weight) in product(
        zip(rows, shares, strict=True), zip(nodes, weights, strict=True)
    ):
        records.append(np.append(row, row @ theta + np.sqrt(variance) * node))
        probabilities.append(share * weight / weights.sum())
    u, p = np.array(records), np.array(probabilities)
    squares = np.einsum("ni,nj->nij", u, u)
    mean = np.einsum("n,nij->ij", p, squares)
    covariance = np.einsum("n,nij,nkl->ijkl", p, squares, squares) - np.einsum("ij,kl->ijkl", mean, mean)
    with jax.enable_x64(True):
        found = record_moments(
            jnp.array(mean[:3, :3]),
            jnp.array(covariance[:3, :3, :3, :3]),
            jnp.array(theta),
            jnp.array(variance),
        )
    assert np.allclose(found[0], mean, rtol=1e-12)
    assert np.allclose(found[1], covariance, rtol=1e-10, atol=1e-12)


def test_normal_moments_match_quadrature() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    w = np.column_stack([np.ones(8), 0.4 + 1.3 * nodes])
    p = weights / weights.sum()
    second = np.einsum("n,ni,nj->ij", p, w, w)
    four = np.einsum("n,ni,nj,nk,nl->ijkl", p, w, w, w, w) - np.einsum("ij,kl->ijkl", second, second)
    with jax.enable_x64(True):
        found = normal_moments(np.array([0.4]), np.array([[1.69]]), 2)
    assert np.allclose(found[0], second)
    assert np.allclose(found[1], four)


def gaussian_holders() -> HolderStatistics:
    """Two holders of 50 and 400 records; Σy was not released."""
    sums = np.array([[[50.0, 3.0, 0.0], [3.0, 60.0, 20.0], [0.0, 20.0, 90.0]]] * 2)
    sums[1] = 7 * sums[1] + 50 * np.eye(3)
    noise = np.array([[0.0, 4.0, np.inf], [4.0, 9.0, 5.0], [np.inf, 5.0, 6.0]])
    return HolderStatistics(sums, noise, np.array([50.0, 400.0]), intercept=True)


@pytest.mark.slow
def test_latent_sums_have_their_conditional_mean_and_covariance() -> None:
    statistics, theta, variance = gaussian_holders(), np.array([0.2, 0.3]), 0.9
    with jax.enable_x64(True):
        second, four = normal_moments(np.array([0.1]), np.array([[1.2]]), 2)
        data = observed(statistics, golden.prior(), np.asarray(second), np.asarray(four))
        noise = jnp.broadcast_to(data.scale**2, data.released.shape)
        state = State(jnp.array(theta), jnp.array(variance), second, four, noise)
        keys = jax.random.split(jax.random.key(1), DRAWS)
        drawn = np.asarray(jax.jit(jax.vmap(lambda key: draw_sums(key, state, data)))(keys))
        mean, covariance = (
            np.asarray(part) for part in record_moments(second, four, state.theta, state.variance)
        )
    rows, columns = np.triu_indices(3)
    rows, columns = rows[1:], columns[1:]
    prior_mean, prior_covariance = mean[rows, columns], covariance[rows, columns][:, rows, columns]
    seen = np.isfinite(statistics.noise[rows, columns])
    for j, count in enumerate(statistics.counts):
        joint = count * prior_covariance
        gain = joint[:, seen] @ np.linalg.inv(
            joint[np.ix_(seen, seen)] + np.diag(statistics.noise[rows, columns][seen] ** 2)
        )
        released = statistics.sums[j, rows, columns]
        exact = count * prior_mean + gain @ (released - count * prior_mean)[seen]
        left = joint - gain @ joint[seen]
        assert near(drawn[:, j], exact)
        apart = drawn[:, j] - exact
        assert near(np.einsum("ni,nj->nij", apart, apart), left)
        assert not near(drawn[:, j], count * prior_mean)


@pytest.mark.slow
def test_regressions_and_features_have_their_conjugate_means() -> None:
    prior = golden.prior()
    sums, count = np.array([[80.0, 10.0, 30.0], [10.0, 20.0, 5.0], [30.0, 5.0, 40.0]]), 80.0
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(1), DRAWS)
        regress = jax.jit(
            jax.vmap(lambda key: draw_regression(key, jnp.array(sums), jnp.array(count), prior))
        )
        features = jax.jit(
            jax.vmap(lambda key: draw_features(key, jnp.array(sums[:2, :2]), jnp.array(count), prior))
        )
        theta, variance = (np.asarray(part) for part in regress(keys))
        mean, covariance = (np.asarray(part) for part in features(keys))
    precision = sums[:2, :2] + np.linalg.inv(prior.theta_covariance)
    middle = np.linalg.solve(precision, sums[:2, 2])
    rate = prior.rate + (sums[2, 2] - middle @ precision @ middle) / 2
    expected = rate / (prior.shape + count / 2 - 1)
    assert near(theta, middle)
    assert near(variance, expected)
    apart = theta - middle
    assert near(np.einsum("ni,nj->nij", apart, apart), expected * np.linalg.inv(precision))
    scatter = 1.0 + 20.0 - 10.0**2 / 80 + 80 / 81 * (10 / 80) ** 2
    assert near(covariance[:, 0, 0], scatter / (50 + 80 - 2))
    assert near(mean[:, 0], 10 / 81)
    assert near(81 * (mean[:, 0] - 10 / 81) ** 2, scatter / (50 + 80 - 2))


def test_repaired_moments_are_positive_semidefinite() -> None:
    case = golden.cases("gibbs-noisy")["bs_N1000_e0.1"]
    fourth = golden.statistics(case, half=True).fourth_moments
    assert fourth is not None
    assert np.linalg.eigvalsh(fourth[0, 0])[0] < 0
    second, covariance = repaired(fourth[0, 0], fourth, intercept=True)
    assert second[0, 0] == pytest.approx(1.0)
    assert np.linalg.eigvalsh(second)[0] > -1e-12
    assert np.linalg.eigvalsh(covariance.reshape(4, 4))[0] > -1e-12
    assert np.allclose(covariance[0, 0], 0.0)
