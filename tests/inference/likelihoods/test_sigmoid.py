"""Sigmoids of normal predictors, and perturbed records that have them, against integrals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from inference.likelihoods import perturbed_logistic_density
from inference.likelihoods.regression.sigmoid import response_moments, sigmoid_table


def sigmoid_derivatives(s: np.ndarray) -> np.ndarray:
    """2 sigmoid(s) - 1 and its first three derivatives, (4, …)."""
    g = np.tanh(s / 2)
    first = (1 - g**2) / 2
    return np.stack([g, first, -g * first, first * (g**2 - first)])


@pytest.mark.parametrize("sd", [0.0, 1.99, 2.01, 30.0])
def test_sigmoid_moments_match_integrals(sd: float) -> None:
    """Against 40 Gauss-Legendre nodes on each piece, no piece longer than half a unit or half an sd."""
    for loc in (0.0, -1.3, 15.0):
        if sd == 0:
            expected = sigmoid_derivatives(np.array(loc))
        else:
            pieces = int(24 * max(sd, 1.0) / min(sd, 1.0)) + 1
            at, weight = np.polynomial.legendre.leggauss(40)
            ends = np.linspace(loc - 12 * sd, loc + 12 * sd, pieces + 1)
            half = np.diff(ends)[:, None] / 2
            s, weight = (ends[:-1, None] + half * (at + 1)).ravel(), (half * weight).ravel()
            density = np.exp(-(((s - loc) / sd) ** 2) / 2) / (sd * np.sqrt(2 * np.pi))
            expected = sigmoid_derivatives(s) @ (weight * density)
        found = response_moments(jnp.array(loc), jnp.array(sd**2))
        np.testing.assert_allclose(found, expected, atol=1e-10)


def sigmoid_mean(loc, sd):
    """E sigmoid(t) = integral of sigmoid'(s) P(t > s) ds, in panels of an eighth of both widths."""
    x, w = np.polynomial.legendre.leggauss(20)
    cuts = np.unique(np.clip([*np.linspace(-60, 60, 481), *(loc + sd * np.linspace(-9, 9, 145))], -60, 60))
    left, width = cuts[:-1, None], np.diff(cuts)[:, None]
    s = left + width * (x + 1) / 2
    return np.sum(width * w / 2 * special.expit(s) * special.expit(-s) * special.ndtr((loc - s) / sd))


@pytest.mark.slow
@pytest.mark.parametrize("sd", [1e-3, 1.99, 2.01, 100.0])
def test_tabled_sigmoid_is_accurate_for_any_predictor_sd(sd):
    locs = np.array([0.0, 0.77, -3.3, 15.0, 3 * sd, -1.234 * sd])
    found = jax.jit(lambda loc, variance: sigmoid_table(variance)(loc))(jnp.asarray(locs), jnp.asarray(sd**2))
    np.testing.assert_allclose(found, [sigmoid_mean(loc, sd) for loc in locs], rtol=0, atol=1e-8)


@pytest.mark.slow
def test_logistic_records_match_integrals_over_private_record():
    """By Gauss-Hermite with 60 × 60 nodes over the private features, whose predictor is narrow here."""
    noise_sd, p, q = 0.8, 0.7, 0.3
    slopes, intercept = np.array([1.5, -0.7]), 0.3
    middle, covariance = np.array([0.2, -0.1]), np.array([[0.3, 0.1], [0.1, 0.2]])
    reports = np.array([[0.3, -0.2, 1.0], [0.3, -0.2, 0.0], [-2.0, 1.5, 1.0], [3.0, -3.0, 0.0]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    u, v = np.meshgrid(nodes, nodes)
    x = middle + np.stack([u.ravel(), v.ravel()], -1) @ np.linalg.cholesky(covariance).T
    w = np.outer(weights, weights).ravel() / weights.sum() ** 2
    yes = q + (p - q) * special.expit(intercept + x @ slopes)
    noise = stats.multivariate_normal(np.zeros(2), noise_sd**2 * np.eye(2))
    expected = [w @ (noise.pdf(z - x) * (yes if told else 1 - yes)) for *z, told in reports]
    density = perturbed_logistic_density(
        slopes, intercept, middle, covariance, feature_noise_sd=noise_sd, p=p, q=q
    )
    np.testing.assert_allclose(np.exp(density(reports)), expected, rtol=1e-7)
