"""Perturbed records: against the joint normal law written out, and integrals over the private record."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from inference.likelihoods import PerturbedLinearRecords, perturbed_logistic_density
from inference.likelihoods.regression.moments import linear_moments

MEAN, COVARIANCE = np.array([0.2, -0.1]), np.array([[0.3, 0.1], [0.1, 0.2]])
SLOPES, INTERCEPT, SD = np.array([1.5, -0.7]), 0.3, 0.4


@pytest.mark.slow
def test_linear_records_match_the_joint_normal_density():
    """The law of z = (x, y) + noise, by the linear map from (x, residual, noises)."""
    maps = np.array([[1, 0, 0], [0, 1, 0], [*SLOPES, 1]])
    private = np.zeros((3, 3))
    private[:2, :2], private[2, 2] = COVARIANCE, SD**2
    covariance = maps @ private @ maps.T + np.diag([0.8**2, 0.8**2, 1.1**2])
    mean = np.append(MEAN, INTERCEPT + SLOPES @ MEAN)
    z = np.random.default_rng(1).multivariate_normal(mean, covariance, 50)
    expected = stats.multivariate_normal(mean, covariance).logpdf(z).sum()
    rows, moments = np.column_stack([np.ones(50), z]), linear_moments(SLOPES, INTERCEPT, SD, MEAN, COVARIANCE)
    found, wrong = (
        float(PerturbedLinearRecords(moments, [noise_sd, noise_sd, 1.1], 50).log_prob(rows.T @ rows))
        for noise_sd in (0.8, 0.81)
    )
    assert found == pytest.approx(expected, rel=1e-12)
    assert abs(wrong - expected) > 1e-3


@pytest.mark.slow
def test_logistic_records_match_integrals_over_private_record():
    """By Gauss-Hermite with 60 × 60 nodes over the private features, whose predictor is narrow here."""
    noise_sd, p, q = 0.8, 0.7, 0.3
    reports = np.array([[0.3, -0.2, 1.0], [0.3, -0.2, 0.0], [-2.0, 1.5, 1.0], [3.0, -3.0, 0.0]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    u, v = np.meshgrid(nodes, nodes)
    x = MEAN + np.stack([u.ravel(), v.ravel()], -1) @ np.linalg.cholesky(COVARIANCE).T
    w = np.outer(weights, weights).ravel() / weights.sum() ** 2
    yes = q + (p - q) * special.expit(INTERCEPT + x @ SLOPES)
    noise = stats.multivariate_normal(np.zeros(2), noise_sd**2 * np.eye(2))
    expected = [w @ (noise.pdf(z - x) * (yes if told else 1 - yes)) for *z, told in reports]
    density = perturbed_logistic_density(
        SLOPES, INTERCEPT, MEAN, COVARIANCE, feature_noise_sd=noise_sd, p=p, q=q
    )
    np.testing.assert_allclose(np.exp(density(reports)), expected, rtol=1e-7)
