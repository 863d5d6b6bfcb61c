"""LDP-SGD: its gradients, its noise, its single pass, and that it learns where noise is small."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from benchmarks.baselines.ldp_sgd import (
    clipped,
    gradient_noise_sd,
    group_size,
    ldp_sgd,
    logistic_loss_gradient,
    squared_loss_gradient,
)
from ldp_client.documents.rational import Rational
from tests.statistics import FALSE_ALARM

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


def test_clipping_shortens_only_long_gradients():
    found = clipped(np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]))
    assert found == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))


def test_noise_is_calibrated_to_opposite_gradients():
    """METHODS 1.5: σ/Δ = 3.7306 at ε = 1, δ = 1e-5; Δ = 2."""
    found = gradient_noise_sd(Rational(1), Rational.parse("1e-5"), 10)
    assert found == pytest.approx(2 * 3.7306, rel=1e-4)
    with pytest.raises(ValueError, match="too small"):
        gradient_noise_sd(Rational.parse("1e-9"), Rational.parse("1e-30"), 10)


def test_group_size_is_d_log_d_over_epsilon_squared():
    assert group_size(10, 1.0) == 24
    assert group_size(10, 0.5) == 93
    assert group_size(1, 64.0) == 1


def run(gradient, responses, **options):
    settings = {"noise_sd": 0.5, "people_a_step": 50, "rate": 1.0, "random": np.random.default_rng(5)}
    return ldp_sgd(gradient, X, responses, **{**settings, **options})


def test_every_person_takes_part_at_most_once():
    seen = []

    def recording(theta, x, y):
        seen.extend(map(tuple, x))
        return squared_loss_gradient(theta, x, y)

    run(recording, Y, people_a_step=300)
    assert len(seen) == len(set(seen)) == PEOPLE // 300 * 300


def test_sgd_approaches_the_best_coefficients():
    best = np.linalg.lstsq(X, Y, rcond=None)[0]
    assert run(squared_loss_gradient, Y, rate=4.0) == pytest.approx(best, abs=0.1)
    assert run(logistic_loss_gradient, SIGNS, rate=8.0) @ TRUTH > 1.0


def test_one_step_has_the_spread_of_the_noise():
    """From 0, one step of m people moves by rate × (mean gradient + noise of sd σ/√m)."""
    still = np.zeros(PEOPLE)
    ends = [
        run(squared_loss_gradient, still, people_a_step=PEOPLE, random=np.random.default_rng(seed))
        for seed in range(500)
    ]
    squares = np.sum(np.square(ends)) / (0.5**2 / PEOPLE)
    assert FALSE_ALARM < stats.chi2.sf(squares, 1000) < 1 - FALSE_ALARM
    assert not FALSE_ALARM < stats.chi2.sf(squares * 4, 1000) < 1 - FALSE_ALARM
