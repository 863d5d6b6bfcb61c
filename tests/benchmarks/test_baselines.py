"""Baselines of benchmarks: corrections of the unbiased estimator, and the gradients of LDP-SGD."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.baselines.ldp_sgd import (
    gradient_noise_sd,
    logistic_loss_gradient,
    squared_loss_gradient,
)
from benchmarks.baselines.simplex import PROJECTIONS, norm_sub
from ldp_client.documents.rational import Rational

TRUE = np.array([0.6, 0.3, 0.1])
ESTIMATES = np.random.default_rng(1).normal(0.2, 0.4, (200, 5))


def test_norm_sub_shifts_all_positive_shares_equally():
    """The conditions that only the projection meets (Duchi et al. 2008)."""
    found = norm_sub(ESTIMATES)
    taken = ESTIMATES - found
    shift = np.max(np.where(found > 0, taken, -np.inf), -1, keepdims=True)
    assert np.allclose(np.where(found > 0, taken - shift, 0), 0)
    assert (np.where(found == 0, ESTIMATES - shift, 0) <= 1e-12).all()


@pytest.mark.parametrize("name", PROJECTIONS)
def test_projections_sum_to_one_and_leave_the_simplex_alone(name):
    project = PROJECTIONS[name]
    assert project(ESTIMATES).sum(-1) == pytest.approx(1)
    assert project(TRUE) == pytest.approx(TRUE)
    assert name == "norm" or (project(ESTIMATES) >= 0).all()


@pytest.mark.parametrize(
    ("loss", "gradient"),
    [
        (lambda theta, x, y: (x @ theta - y) ** 2 / 2, squared_loss_gradient),
        (lambda theta, x, y: jnp.logaddexp(0.0, -y * (x @ theta)), logistic_loss_gradient),
    ],
    ids=["squared", "logistic"],
)
def test_gradients_match_autodiff_of_loss(loss, gradient):
    random, theta = np.random.default_rng(1), np.array([0.4, -0.3])
    x, y = random.uniform(-0.7, 0.7, (50, 2)), random.choice([-1.0, 1.0], 50)
    with jax.enable_x64(True):
        expected = jax.vmap(jax.grad(loss), (None, 0, 0))(theta, x, y)
    assert gradient(theta, x, y) == pytest.approx(np.asarray(expected), abs=1e-12)


def test_noise_is_calibrated_to_opposite_gradients():
    """METHODS 1.5: σ/Δ = 3.7306 at ε = 1, δ = 1e-5; Δ = 2."""
    found = gradient_noise_sd(Fraction(1), Rational.parse("1e-5"), 10)
    assert found == pytest.approx(2 * 3.7306, rel=1e-4)
    with pytest.raises(ValueError, match="too small"):
        gradient_noise_sd(Rational.parse("1e-9"), Rational.parse("1e-30"), 10)
