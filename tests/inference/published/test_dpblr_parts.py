"""The steps of DPBLR's samplers against exact sums, dense algebra and quadrature."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published.gibbs_ss import (
    State,
    draw_sums,
    normal_moments,
    observed,
    record_moments,
)
from tests.inference.published import dpblr_cases as golden

DRAWS = 20_000
LIMIT = 5.0


def near(found: np.ndarray, mean: np.ndarray | float) -> bool:
    """Whether draws (n, …) could have this mean, entry by entry."""
    errors = found.std(axis=0) / np.sqrt(len(found))
    return bool(np.all(np.abs(found.mean(axis=0) - mean) < LIMIT * errors + 1e-12))


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
        data = observed(statistics, golden.prior())
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
