"""Perturbed choices against enumeration of the private choice and of every report."""

from __future__ import annotations

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from likelihood_references import FALSE_ALARM, gradient, same_moments_p_value
from scipy import stats

from inference.likelihoods import RandomizedResponseCounts, UnaryEncodingColumnSums, UnaryEncodingPatterns

PROBS = np.array([0.5, 0.3, 0.15, 0.05])
K = len(PROBS)
ALL_PATTERNS = np.array(list(product([0, 1], repeat=K)))
BITS = [(0.5, 0.2), (0.5, 2e-9), (0.75, 0.25), (0.9, 0.3)]

log_prob = jax.jit(lambda law, value: law.log_prob(value))


def unary_pattern_probs(p: float, q: float, patterns: np.ndarray = ALL_PATTERNS) -> np.ndarray:
    """Probability of each pattern, by enumeration of the true choice."""
    chance = np.where(np.eye(K, dtype=bool), p, q)
    given_choice = np.prod(np.where(patterns[:, None, :] == 1, chance, 1 - chance), axis=-1)
    return given_choice @ PROBS


def response_law(p: float, n: int = 6) -> RandomizedResponseCounts:
    return RandomizedResponseCounts(PROBS, p, (1 - p) / (K - 1), n)


@pytest.mark.parametrize("p", [0.25001, 0.4, 0.999])
def test_randomized_response_matches_enumeration(p: float) -> None:
    channel = np.where(np.eye(K, dtype=bool), p, (1 - p) / (K - 1))
    outcomes = np.array([c for c in product(range(7), repeat=K) if sum(c) == 6])
    found = np.asarray(log_prob(response_law(p), outcomes))
    np.testing.assert_allclose(found, stats.multinomial.logpmf(outcomes, 6, PROBS @ channel), rtol=1e-10)
    assert np.exp(found).sum() == pytest.approx(1, abs=1e-12)


def test_yes_no_equals_two_choices() -> None:
    law = RandomizedResponseCounts(np.array([0.9, 0.1]), 0.75, 0.25, 20)
    expected = stats.binom.logpmf(7, 20, 0.25 + 0.5 * 0.1)
    assert float(law.log_prob(np.array([13, 7]))) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("p", "q"), BITS)
def test_patterns_match_enumeration(p: float, q: float) -> None:
    law = UnaryEncodingPatterns(PROBS, p, q, ALL_PATTERNS, 16)
    expected = unary_pattern_probs(p, q)
    assert expected.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(law.log_pattern_probs, np.log(expected), rtol=1e-10, atol=1e-10)
    counts = np.random.default_rng(0).multinomial(16, expected)
    assert float(log_prob(law, counts)) == pytest.approx(
        stats.multinomial.logpmf(counts, 16, expected), rel=1e-9
    )


@pytest.mark.slow
def test_unlisted_patterns_have_the_remaining_probability() -> None:
    listed = ALL_PATTERNS[[1, 5, 8]]
    probs = unary_pattern_probs(0.5, 0.2, listed)
    law = UnaryEncodingPatterns(PROBS, 0.5, 0.2, listed, 9)
    for counts in ([2, 3, 4], [0, 3, 1], [0, 0, 0]):
        cells, full = [*probs, 1 - probs.sum()], [*counts, 9 - sum(counts)]
        expected = stats.multinomial.logpmf(full, 9, cells)
        assert float(log_prob(law, np.array(counts))) == pytest.approx(expected, rel=1e-9)
    draws = np.asarray(law.sample(jax.random.key(0), (20_000,)))
    rest = 9 - draws.sum(-1)
    totals = np.array([*draws.sum(0), rest.sum()])
    assert rest.min() >= 0
    assert stats.chisquare(totals, totals.sum() * np.array(cells)).pvalue > FALSE_ALARM


def test_log_likelihood_is_zero_without_reports_or_patterns() -> None:
    law = UnaryEncodingPatterns(PROBS, 0.5, 0.2, np.zeros((0, K)), 0)
    assert float(law.log_prob(np.zeros(0, int))) == 0
    assert float(UnaryEncodingColumnSums(PROBS, 0.5, 0.2, 0).log_prob(np.zeros(K))) == 0


def enumerated_sums(p: float, q: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the bits of one report."""
    probs = unary_pattern_probs(p, q)
    mean = probs @ ALL_PATTERNS
    return mean, (ALL_PATTERNS - mean).T @ ((ALL_PATTERNS - mean) * probs[:, None])


@pytest.mark.parametrize(("p", "q"), [*BITS, (0.99, 0.2)])
def test_column_sums_have_the_enumerated_moments(p: float, q: float) -> None:
    mean, covariance = enumerated_sums(p, q)
    law = UnaryEncodingColumnSums(PROBS, p, q, 37)
    value = 37 * mean + np.array([2.0, -1.0, 0.5, 3.0]) * np.sqrt(np.diag(covariance))
    expected = stats.multivariate_normal.logpdf(value, 37 * mean, 37 * covariance)
    assert float(log_prob(law, value)) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(law.mean, 37 * mean, rtol=1e-12)
    np.testing.assert_allclose(law.variance, 37 * np.diag(covariance), rtol=1e-9)


def test_column_sums_comparison_notices_a_missing_rank_one_term() -> None:
    mean, covariance = enumerated_sums(0.5, 0.2)
    law, value = UnaryEncodingColumnSums(PROBS, 0.5, 0.2, 37), 37 * mean + 1.0
    wrong = stats.multivariate_normal.logpdf(value, 37 * mean, 37 * np.diag(np.diag(covariance)))
    assert abs(float(law.log_prob(value)) - wrong) > 1e-3


def test_column_sums_sampler_follows_the_law() -> None:
    mean, covariance = enumerated_sums(0.5, 0.1)
    law = UnaryEncodingColumnSums(PROBS, 0.5, 0.1, 37)
    draws = np.asarray(law.sample(jax.random.key(1), (5000,)))
    assert same_moments_p_value(draws, 37 * mean, 37 * covariance) > FALSE_ALARM
    assert same_moments_p_value(draws, 37 * mean, 37 * 1.2 * covariance) < FALSE_ALARM


def programs():
    counts = np.array([9, 4, 7, 5])
    patterns = np.array([1, 0, 3, 2])
    listed = ALL_PATTERNS[[0, 3, 9, 14]]
    sums = np.array([11.0, 9.5, 3.0, 8.0])
    return {
        "randomized response": lambda t: RandomizedResponseCounts(t, 0.4, 0.2, 25).log_prob(counts),
        "patterns": lambda t: UnaryEncodingPatterns(t, 0.5, 0.2, listed, 8).log_prob(patterns),
        "column sums": lambda t: UnaryEncodingColumnSums(t, 0.5, 0.2, 25).log_prob(sums),
    }


@pytest.mark.parametrize("name", programs())
def test_gradient_matches_finite_differences(name: str) -> None:
    def program(x):
        return programs()[name](jax.nn.softmax(x))

    at = np.array([0.3, -0.5, 1.0, 0.1])
    expected = gradient(jax.jit(program), at, 2e-2)
    np.testing.assert_allclose(jax.grad(program)(jnp.array(at)), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", programs())
def test_batches_vmap_and_jit_agree(name: str) -> None:
    program, thetas = programs()[name], jnp.array([PROBS, PROBS[::-1]])
    expected = [program(theta) for theta in thetas]
    np.testing.assert_allclose(program(thetas), expected, rtol=1e-12)
    np.testing.assert_allclose(jax.jit(jax.vmap(program))(thetas), expected, rtol=1e-12)


def test_float32_stays_finite_at_the_corners_of_the_simplex() -> None:
    n = 10_000_000
    value = np.array([n - 30, 10, 10, 10])
    laws = [
        lambda t, q: RandomizedResponseCounts(t, 1 - 3 * q, q, n),
        lambda t, q: UnaryEncodingPatterns(t, 0.5, q, ALL_PATTERNS[:4], n),
        lambda t, q: UnaryEncodingColumnSums(t, 0.5, q, n),
    ]
    corners = np.array([[1.0, 0, 0, 0], [0.25] * 4, [1 - 3e-7, 1e-7, 1e-7, 1e-7]], np.float32)
    with jax.enable_x64(False):
        for law in laws:
            both = jax.jit(jax.value_and_grad(lambda t, q, law=law: law(t, q).log_prob(value)))
            for theta, q in product(corners, np.float32([2e-9, 0.2, 0.245])):
                result, grad = both(theta, q)
                assert result.dtype == jnp.float32
                assert np.isfinite(result)
                assert np.all(np.isfinite(grad))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must be 1"):
        RandomizedResponseCounts(PROBS, 0.5, 0.2, 10)
    with pytest.raises(ValueError, match="probs"):
        UnaryEncodingColumnSums(PROBS * 1.1, 0.5, 0.2, 10, validate_args=True)
    with pytest.raises(ValueError, match="q"):
        UnaryEncodingPatterns(PROBS, 0.5, 0.0, ALL_PATTERNS, 10, validate_args=True)
