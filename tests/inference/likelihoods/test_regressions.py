"""Summed second moments against explicit covariances: Isserlis, and enumeration of the joint law."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from likelihood_references import (
    gaussian_moments,
    gradient,
    logistic_moments,
    noisy_coordinates,
    svec,
    unit_matrices,
)
from scipy import stats

from inference.likelihoods import SummedLinearStatistics, SummedLogisticStatistics
from inference.likelihoods.covariance import solve_covariance
from inference.likelihoods.regression.sigmoid import response_moments
from inference.likelihoods.regression.summed import SumLaw

SD = 0.7
SUMS = {"total_count": 50, "noise_variance": 20.0, "constant_weight": 0.8, "response_weight": 0.6}
LOGISTIC_CASES = [(-2.0, 0.5), (0.0, 4.0)]

log_prob = jax.jit(lambda distribution, value: distribution.log_prob(value))
sum_law = jax.jit(lambda distribution: distribution.law)
sample = jax.jit(lambda distribution, key: distribution.sample(key))


def features(d: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coefficients, feature mean and feature covariance."""
    rng = np.random.default_rng([seed, d])
    root = rng.normal(size=(d, d))
    return rng.normal(size=d), 0.4 * rng.normal(size=d), root @ root.T / d + 0.1 * np.eye(d)


def linear_law(d: int, intercept: float = 0.4, **changes: float) -> SummedLinearStatistics:
    coefficients, mean, covariance = features(d)
    return SummedLinearStatistics(coefficients, intercept, mean, covariance, sd=SD, **(SUMS | changes))


def linear_moments(d: int, intercept: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    coefficients, mean, covariance = features(d)
    c, cross = SUMS["response_weight"], covariance @ coefficients
    loc = np.array([SUMS["constant_weight"], *mean, c * (intercept + coefficients @ mean)])
    spread = np.zeros((d + 2, d + 2))
    spread[1:-1, 1:-1] = covariance
    spread[-1, 1:-1] = spread[1:-1, -1] = c * cross
    spread[-1, -1] = c**2 * (coefficients @ cross + SD**2)
    return gaussian_moments(loc, spread)


def logistic_law(d: int, intercept: float, size: float = 1.0, **changes: float) -> SummedLogisticStatistics:
    coefficients, mean, covariance = features(d)
    return SummedLogisticStatistics(size * coefficients, intercept, mean, covariance, **(SUMS | changes))


def exact_logistic_moments(d: int, intercept: float, size: float) -> tuple[np.ndarray, np.ndarray]:
    coefficients, mean, covariance = features(d)
    ends = (SUMS["constant_weight"], SUMS["response_weight"])
    return logistic_moments(size * coefficients, intercept, mean, covariance, ends)


def some_statistics(law: SummedLinearStatistics | SummedLogisticStatistics) -> np.ndarray:
    """A draw, pushed off the law and made indefinite."""
    p = law.event_shape[0]
    push = np.random.default_rng(p).normal(size=(p, p))
    return np.asarray(sample(law, jax.random.key(p))) + 5 * (push + push.T) - 200 * np.eye(p)


def dense_log_prob(value: np.ndarray, moments: tuple[np.ndarray, np.ndarray], keep: np.ndarray) -> float:
    n, mean, covariance = SUMS["total_count"], *moments
    total = n * covariance + SUMS["noise_variance"] * np.eye(len(mean))
    return stats.multivariate_normal.logpdf(svec(value)[keep], n * mean[keep], total[np.ix_(keep, keep)])


def covariance_of_one(law: SumLaw) -> np.ndarray:
    """The explicit matrix of a law's covariance of one v v', in svec coordinates."""
    second, basis, weights = (np.asarray(x) for x in (law.second, law.basis, law.weights))
    units = unit_matrices(len(second))
    inner = np.einsum("aij,bij->ab", units, basis)
    return 2 * np.einsum("aij,bij->ab", units, second @ units @ second) + inner @ weights @ inner.T


@pytest.mark.parametrize("d", [3])
def test_linear_density_matches_dense_covariance(d: int) -> None:
    law = linear_law(d)
    value, keep = some_statistics(law), noisy_coordinates(d + 2, law.exact)
    assert np.linalg.eigvalsh(value)[0] < 0
    moments = linear_moments(d)
    assert float(log_prob(law, value)) == pytest.approx(dense_log_prob(value, moments, keep), rel=1e-10)
    np.testing.assert_allclose(covariance_of_one(sum_law(law)), moments[1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize(("intercept", "size"), LOGISTIC_CASES)
def test_logistic_density_matches_dense_covariance(d: int, intercept: float, size: float) -> None:
    law = logistic_law(d, intercept, size)
    value, keep = some_statistics(law), noisy_coordinates(d + 2, law.exact)
    moments = exact_logistic_moments(d, intercept, size)
    assert float(log_prob(law, value)) == pytest.approx(dense_log_prob(value, moments, keep), rel=1e-9)


def linear_program(value: np.ndarray, at):
    root = jnp.array([[jnp.exp(at[4]), 0.0], [at[5], jnp.exp(at[6])]])
    covariance = root @ root.T
    law = SummedLinearStatistics(at[:2], at[2], at[7:9], covariance, sd=jnp.exp(at[3]), **SUMS)
    return law.log_prob(value)


def logistic_program(value: np.ndarray, at):
    root = jnp.array([[jnp.exp(at[4]), 0.0], [at[5], jnp.exp(at[6])]])
    law = SummedLogisticStatistics(at[:2], at[2], at[7:9], root @ root.T, **SUMS)
    return law.log_prob(value) + at[3]


density = jax.jit(lambda program, value, at: program(value, at), static_argnums=0)
slope = jax.jit(lambda program, value, at: jax.grad(program, 1)(value, at), static_argnums=0)


def gradients(program, value: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """By finite differences, and automatic."""
    return gradient(lambda x: density(program, value, x), at), slope(program, value, at)


GRADIENT_POINTS = [
    np.array([0.5, -0.3, 0.2, 0.1, -0.2, 0.3, 0.1, 0.4, -0.2]),
    np.zeros(9),
    np.array([1e-9, 0.0, 0.0, 0.0, 0.0, 1e-9, 0.0, 0.0, 0.0]),
]


@pytest.mark.slow
@pytest.mark.parametrize("program", [linear_program, logistic_program])
@pytest.mark.parametrize("at", GRADIENT_POINTS, ids=["generic", "equal eigenvalues", "nearly equal"])
def test_gradient_matches_finite_differences(program, at: np.ndarray) -> None:
    law = linear_law(2) if program is linear_program else logistic_law(2, 0.3)
    value = some_statistics(law)
    expected, found = gradients(program, value, at)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-7)


def test_covariance_solver_matches_dense_matrix() -> None:
    rng = np.random.default_rng(3)
    root, push = rng.normal(size=(4, 4)), rng.normal(size=(2, 4, 4))
    matrix, stack = root @ root.T, push + np.swapaxes(push, -1, -2)
    units = unit_matrices(4)
    dense = np.eye(10) + np.einsum("aij,bij->ab", units, matrix @ units @ matrix)
    log_det, solved = solve_covariance(jnp.array(matrix), jnp.array(stack))
    assert float(log_det) == pytest.approx(np.linalg.slogdet(dense)[1], rel=1e-12)
    np.testing.assert_allclose(svec(np.asarray(solved)), np.linalg.solve(dense, svec(stack).T).T, rtol=1e-10)


def sigmoid_derivatives(s: np.ndarray) -> np.ndarray:
    """2 sigmoid(s) - 1 and its first three derivatives, (4, …)."""
    g = np.tanh(s / 2)
    first = (1 - g**2) / 2
    return np.stack([g, first, -g * first, first * (g**2 - first)])


def gauss_legendre(ends: np.ndarray, nodes: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the composite rule between these ends."""
    at, weight = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (at + 1)).ravel(), (half * weight).ravel()


@pytest.mark.parametrize("sd", [0.0, 1.99, 2.01, 30.0])
def test_sigmoid_moments_match_integrals(sd: float) -> None:
    """Against 40 Gauss-Legendre nodes on each piece, no piece longer than half a unit or half an sd."""
    for loc in (0.0, -1.3, 15.0):
        if sd == 0:
            expected = sigmoid_derivatives(np.array(loc))
        else:
            pieces = int(24 * max(sd, 1.0) / min(sd, 1.0)) + 1
            s, weight = gauss_legendre(np.linspace(loc - 12 * sd, loc + 12 * sd, pieces + 1))
            density = np.exp(-(((s - loc) / sd) ** 2) / 2) / (sd * np.sqrt(2 * np.pi))
            expected = sigmoid_derivatives(s) @ (weight * density)
        found = response_moments(jnp.array(loc), jnp.array(sd**2))
        np.testing.assert_allclose(found, expected, atol=1e-10)
