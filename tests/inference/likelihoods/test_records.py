"""Perturbed records: against the joint normal law written out, and integrals over the private record."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from inference.likelihoods import PerturbedLinearRecords, PerturbedLogisticRecords
from inference.likelihoods.regression.sigmoid import expected_sigmoid, sigmoid_table

MEAN, COVARIANCE = np.array([0.2, -0.1]), np.array([[0.3, 0.1], [0.1, 0.2]])
SLOPES, INTERCEPT, SD = np.array([1.5, -0.7]), 0.3, 0.4
SDS = (1e-3, 1.99, 2.01, 100.0)


def sigmoid_mean(loc, sd):
    """E sigmoid(t) = integral of sigmoid'(s) P(t > s) ds, in panels of an eighth of both widths."""
    x, w = np.polynomial.legendre.leggauss(20)
    cuts = np.unique(np.clip([*np.linspace(-60, 60, 481), *(loc + sd * np.linspace(-9, 9, 145))], -60, 60))
    left, width = cuts[:-1, None], np.diff(cuts)[:, None]
    s = left + width * (x + 1) / 2
    return np.sum(width * w / 2 * special.expit(s) * special.expit(-s) * special.ndtr((loc - s) / sd))


def locs(sd):
    return np.array([0.0, 0.77, -3.3, 15.0, 3 * sd, -1.234 * sd])


def worst(rule, sd):
    found = np.asarray(rule(jnp.asarray(locs(sd)), jnp.asarray(sd**2)))
    return float(np.max(np.abs(found - [sigmoid_mean(loc, sd) for loc in locs(sd)])))


@pytest.mark.slow
@pytest.mark.parametrize("sd", SDS)
def test_expected_sigmoid_is_accurate_for_any_predictor_sd(sd):
    assert worst(expected_sigmoid, sd) < 1e-10
    assert worst(jax.jit(lambda loc, variance: sigmoid_table(variance)(loc)), sd) < 1e-8


def linear(**changes):
    arguments = {"feature_noise_sd": 0.8, "response_noise_sd": 1.1, "total_count": 50, **changes}
    return PerturbedLinearRecords(SLOPES, INTERCEPT, MEAN, COVARIANCE, sd=SD, **arguments)


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


def logistic(**changes):
    arguments = {"feature_noise_sd": 0.8, "p": 0.7, "q": 0.3, **changes}
    return PerturbedLogisticRecords(SLOPES, INTERCEPT, MEAN, COVARIANCE, **arguments)


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
    np.testing.assert_allclose(np.exp(logistic().log_prob(REPORTS)), expected, rtol=1e-7)
