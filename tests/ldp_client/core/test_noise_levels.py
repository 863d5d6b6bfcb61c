"""The integers of a study against 900-bit arithmetic: never less private than stated, hardly more."""

import mpmath
import pytest

from ldp_client.core import noise_levels
from schemas import Rational

EPSILONS = ["0.001", "0.5", "2.5", "20"]


def exact(value):
    return mpmath.mpf(value.numerator) / value.denominator


@pytest.mark.parametrize("text", EPSILONS)
def test_unary_threshold_is_the_smallest_private_one(text):
    epsilon = Rational.parse(text)
    threshold, whole = noise_levels.unary_threshold(epsilon), 1 << 32
    assert mpmath.log(mpmath.mpf(whole - threshold) / threshold) <= exact(epsilon)
    assert mpmath.log(mpmath.mpf(whole - threshold + 1) / (threshold - 1)) > exact(epsilon)


def delta_of(mu, epsilon):
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("text", EPSILONS)
@pytest.mark.parametrize("delta", ["1e-12", "0.1"])
def test_gaussian_radius_is_the_largest_within_delta(text, delta):
    epsilon, allowed = Rational.parse(text), Rational.parse(delta)
    radius = noise_levels.gaussian_radius(epsilon, allowed, 66)
    spent = delta_of(mpmath.mpf(radius) / 2**20, exact(epsilon))
    assert spent <= exact(allowed)
    assert delta_of(mpmath.mpf(radius + 1) / 2**20, exact(epsilon)) > exact(allowed) * (
        1 - mpmath.mpf(10) ** -9
    )


def test_the_truncation_is_paid_from_delta():
    """With a delta at the size of the truncation's own, more coordinates leave less room."""
    tight = Rational.parse("3e-54")
    few = noise_levels.gaussian_radius(Rational(1), tight, 10)
    many = noise_levels.gaussian_radius(Rational(1), tight, 200)
    assert 0 < many < few
    assert noise_levels.gaussian_radius(Rational(1), Rational.parse("1e-57"), 200) == 0


@pytest.mark.parametrize("size", [1, 2, 10**6, 10**13 + 7])
def test_outer_product_sensitivity_is_reached_by_a_right_angle(size):
    """For v and w at right angles with ‖v‖² = ‖w‖² = s, ‖vvᵀ − wwᵀ‖² = 2s²."""
    bound = noise_levels.outer_product_sensitivity(size)
    assert (bound - 1) ** 2 <= 2 * size * size < bound * bound
