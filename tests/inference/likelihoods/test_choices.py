"""Perturbed choices against enumeration of the private choice and of every report."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from likelihood_references import gradient
from scipy import stats

from inference.likelihoods.choices.multinomial import response_cells
from inference.likelihoods.choices.support_counts import bit_sums
from inference.likelihoods.common import CellCounts

PROBS = np.array([0.5, 0.3, 0.15, 0.05])
K = len(PROBS)
ALL_PATTERNS = np.array(list(product([0, 1], repeat=K)))
BITS = [(0.5, 0.2), (0.5, 2e-9), (0.9, 0.3)]

log_prob = jax.jit(lambda law, value: law.log_prob(value))


def unary_pattern_probs(p: float, q: float, patterns: np.ndarray = ALL_PATTERNS) -> np.ndarray:
    """Probability of each pattern, by enumeration of the true choice."""
    chance = np.where(np.eye(K, dtype=bool), p, q)
    given_choice = np.prod(np.where(patterns[:, None, :] == 1, chance, 1 - chance), axis=-1)
    return given_choice @ PROBS


def response_law(p: float, n: int = 6) -> CellCounts:
    return CellCounts(response_cells(jnp.asarray(PROBS), p, (1 - p) / (K - 1)), n)


@pytest.mark.parametrize("p", [0.25001, 0.4])
def test_randomized_response_matches_enumeration(p: float) -> None:
    channel = np.where(np.eye(K, dtype=bool), p, (1 - p) / (K - 1))
    outcomes = np.array([c for c in product(range(7), repeat=K) if sum(c) == 6])
    found = np.asarray(log_prob(response_law(p), outcomes))
    np.testing.assert_allclose(found, stats.multinomial.logpmf(outcomes, 6, PROBS @ channel), rtol=1e-10)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-12)


def enumerated_sums(p: float, q: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the bits of one report."""
    probs = unary_pattern_probs(p, q)
    mean = probs @ ALL_PATTERNS
    return mean, (ALL_PATTERNS - mean).T @ ((ALL_PATTERNS - mean) * probs[:, None])


@pytest.mark.parametrize(("p", "q"), [*BITS, (0.99, 0.2)])
def test_bit_sums_have_the_enumerated_moments(p: float, q: float) -> None:
    mean, covariance = enumerated_sums(p, q)
    law = bit_sums(PROBS, p, q, 37)
    value = 37 * mean + np.array([2.0, -1.0, 0.5, 3.0]) * np.sqrt(np.diag(covariance))
    expected = stats.multivariate_normal.logpdf(value, 37 * mean, 37 * covariance)
    assert float(log_prob(law, value)) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(law.mean, 37 * mean, rtol=1e-12)
    np.testing.assert_allclose(law.variance, 37 * np.diag(covariance), rtol=1e-9)


def programs():
    counts = np.array([9, 4, 7, 5])
    sums = np.array([11.0, 9.5, 3.0, 8.0])
    return {
        "randomized response": lambda t: CellCounts(response_cells(t, 0.4, 0.2), 25).log_prob(counts),
        "column sums": lambda t: bit_sums(t, 0.5, 0.2, 25).log_prob(sums),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", programs())
def test_gradient_matches_finite_differences(name: str) -> None:
    def program(x):
        return programs()[name](jax.nn.softmax(x))

    at = np.array([0.3, -0.5, 1.0, 0.1])
    expected = gradient(jax.jit(program), at, 2e-2)
    np.testing.assert_allclose(jax.grad(program)(jnp.array(at)), expected, rtol=1e-8, atol=1e-9)
