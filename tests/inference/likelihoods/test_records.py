"""Perturbed records: against the joint normal law written out, and integrals over the private record."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from inference.likelihoods import PerturbedLinearRecords, perturbed_logistic_density
from inference.likelihoods.regression.moments import linear_moments

MEAN, COVARIANCE = np.array([0.2, -0.1]), np.array([[0.3, 0.1], [0.1, 0.2]])
SLOPES, INTERCEPT, SD = np.array([1.5, -0.7]), 0.3, 0.4


def linear(feature_noise_sd=0.8):
    moments = linear_moments(SLOPES, INTERCEPT, SD, MEAN, COVARIANCE)
    return PerturbedLinearRecords(moments, [feature_noise_sd, feature_noise_sd, 1.1], 50)


def moments(z):
    v = np.column_stack([np.ones(len(z)), z])
    return v.T @ v


def joint_law(feature_noise_sd=0.8, response_noise_sd=1.1):
    """Mean and covariance of z = (x, y) + noise, by the linear map from (x, residual, noises)."""
    maps = np.array([[1, 0, 0], [0, 1, 0], [*SLOPES, 1]])
    private = np.zeros((3, 3))
    private[:2, :2], private[2, 2] = COVARIANCE, SD**2
    noise = np.diag([feature_noise_sd**2] * 2 + [response_noise_sd**2])
    return np.append(MEAN, INTERCEPT + SLOPES @ MEAN), maps @ private @ maps.T + noise


@pytest.mark.slow
def test_linear_records_match_the_joint_normal_density():
    mean, covariance = joint_law()
    z = np.random.default_rng(1).multivariate_normal(mean, covariance, 50)
    expected = stats.multivariate_normal(mean, covariance).logpdf(z).sum()
    assert float(linear().log_prob(moments(z))) == pytest.approx(expected, rel=1e-12)
    wrong = linear(feature_noise_sd=0.81).log_prob(moments(z))
    assert abs(float(wrong) - expected) > 1e-3


def logistic_density(z, told, noise_sd, p, q):
    """By Gauss-Hermite with 60 × 60 nodes over the private features, whose predictor is narrow here."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    u, v = np.meshgrid(nodes, nodes)
    x = MEAN + np.stack([u.ravel(), v.ravel()], -1) @ np.linalg.cholesky(COVARIANCE).T
    w = np.outer(weights, weights).ravel() / weights.sum() ** 2
    yes = q + (p - q) * special.expit(INTERCEPT + x @ SLOPES)
    near = stats.multivariate_normal(np.zeros(2), noise_sd**2 * np.eye(2)).pdf(z - x)
    return w @ (near * (yes if told else 1 - yes))


REPORTS = np.array([[0.3, -0.2, 1.0], [0.3, -0.2, 0.0], [-2.0, 1.5, 1.0], [3.0, -3.0, 0.0]])


@pytest.mark.slow
def test_logistic_records_match_integrals_over_private_record():
    expected = [logistic_density(row[:2], row[2] == 1, 0.8, 0.7, 0.3) for row in REPORTS]
    density = perturbed_logistic_density(
        SLOPES, INTERCEPT, MEAN, COVARIANCE, feature_noise_sd=0.8, p=0.7, q=0.3
    )
    np.testing.assert_allclose(np.exp(density(REPORTS)), expected, rtol=1e-7)
