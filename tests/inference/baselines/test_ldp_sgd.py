"""LDP-SGD: its gradients, its noise, its single pass, and that it learns where noise is small."""

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
from ldp_client.documents.rational import Rational

PEOPLE = 20_000
TRUTH = np.array([0.4, -0.3])
X = np.random.default_rng(1).uniform(-0.7, 0.7, (PEOPLE, 2))
Y = X @ TRUTH + np.random.default_rng(2).normal(0, 0.1, PEOPLE)
SIGNS = np.where(np.random.default_rng(3).random(PEOPLE) < 1 / (1 + np.exp(-6 * X @ TRUTH)), 1.0, -1.0)


def squared_loss(theta, x, y):
    return (x @ theta - y) ** 2 / 2


def logistic_loss(theta, x, y):
    return jnp.logaddexp(0.0, -y * (x @ theta))


@pytest.mark.parametrize(
    ("loss", "gradient", "responses"),
    [(squared_loss, squared_loss_gradient, Y), (logistic_loss, logistic_loss_gradient, SIGNS)],
    ids=["squared", "logistic"],
)
def test_gradients_match_autodiff_of_loss(loss, gradient, responses):
    with jax.enable_x64(True):
        expected = jax.vmap(jax.grad(loss), (None, 0, 0))(TRUTH, X[:50], responses[:50])
    assert gradient(TRUTH, X[:50], responses[:50]) == pytest.approx(np.asarray(expected), abs=1e-12)


def test_noise_is_calibrated_to_opposite_gradients():
    """METHODS 1.5: σ/Δ = 3.7306 at ε = 1, δ = 1e-5; Δ = 2."""
    found = gradient_noise_sd(Fraction(1), Rational.parse("1e-5"), 10)
    assert found == pytest.approx(2 * 3.7306, rel=1e-4)
    with pytest.raises(ValueError, match="too small"):
        gradient_noise_sd(Rational.parse("1e-9"), Rational.parse("1e-30"), 10)
