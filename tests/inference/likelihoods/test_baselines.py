"""The published likelihoods agree with ours where they should, and differ where they are known to."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.baselines import (
    DenseLinearStatistics,
    pass_glm_coefficients,
    pass_glm_log_likelihood,
)
from inference.likelihoods import SummedLinearStatistics, SummedLogisticStatistics

SLOPES = np.array([0.6, -0.4])
COVARIANCE = np.array([[0.5, 0.1], [0.1, 0.4]])


def linear(law, slopes, noise: float = 30.0):
    sums = {"total_count": 200, "noise_variance": noise, "constant_weight": 0.7, "response_weight": 0.7}
    return law(slopes, 0.2, 0.5, np.array([0.3, -0.2]), COVARIANCE, **sums)


@pytest.mark.slow
def test_the_dense_form_has_our_density_and_gradient() -> None:
    random = np.random.default_rng(0).normal(0, 20, (4, 4))
    value = np.asarray(linear(SummedLinearStatistics, SLOPES).mean) + random + random.T

    def both(law):
        return jax.value_and_grad(lambda slopes: linear(law, slopes).log_prob(value))(jnp.array(SLOPES))

    (ours, our_slope), (dense, dense_slope) = both(SummedLinearStatistics), both(DenseLinearStatistics)
    assert float(dense) == pytest.approx(float(ours), rel=1e-10)
    np.testing.assert_allclose(dense_slope, our_slope, rtol=1e-8)


def records(n: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """v v' summed over simulated records, and the records themselves."""
    rng = np.random.default_rng(1)
    x = rng.multivariate_normal([0.0, 0.0], COVARIANCE, n)
    yes = rng.random(n) < 1 / (1 + np.exp(-(0.1 + scale * x @ SLOPES)))
    v = np.column_stack([np.ones(n), x, np.where(yes, 1.0, -1.0)])
    return v.T @ v, v


def test_pass_glm_is_the_sum_of_the_polynomial_over_records() -> None:
    sums, v = records(500, 1.0)
    s = v[:, -1] * (0.1 + v[:, 1:-1] @ SLOPES)
    expected = np.polynomial.polynomial.polyval(s, pass_glm_coefficients(4.0)).sum()
    assert float(pass_glm_log_likelihood(0.1, SLOPES, sums, 500)) == pytest.approx(expected, rel=1e-10)


def test_polynomial_is_accurate_only_on_its_interval() -> None:
    """Within 0.1 of log sigmoid on [-2, 2]; far outside it is wrong."""
    near, far = np.linspace(-2, 2, 99), np.array([20.0])
    error = lambda s: np.polynomial.polynomial.polyval(s, pass_glm_coefficients(2.0)) + np.logaddexp(0, -s)  # noqa: E731
    assert np.abs(error(near)).max() < 0.02
    assert np.abs(error(far)).max() > 1


def mode(log_likelihood) -> np.ndarray:
    slope = jax.jit(jax.value_and_grad(lambda theta: -log_likelihood(theta)))
    return minimize(lambda t: tuple(np.asarray(part) for part in slope(t)), np.zeros(3), jac=True).x


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "agree"), [(0.5, True), (6.0, False)])
def test_pass_glm_finds_our_line_while_the_predictor_is_narrow(scale: float, agree: bool) -> None:
    sums, v = records(100_000, scale)
    mean, covariance = v[:, 1:-1].mean(0), np.cov(v[:, 1:-1].T)

    def ours(theta):
        law = SummedLogisticStatistics(
            theta[1:], theta[0], mean, covariance, total_count=100_000, noise_variance=1.0
        )
        return law.log_prob(sums)

    published = mode(lambda theta: pass_glm_log_likelihood(theta[0], theta[1:], sums, 100_000, 2.0))
    gap = np.abs(published - mode(ours)).max()
    assert (gap < 0.05) == agree
