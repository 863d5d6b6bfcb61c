"""Integers against 900-bit arithmetic: their bounds, a study's noise levels, and uniform draws."""

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.core import integers, noise_levels
from ldp_client.core.randomness import NotForRealAnswers, uniform_below
from schemas import Rational


def encloses(bounds, exact, bits, slack):
    low, high = bounds
    scaled = exact * mpmath.mpf(2) ** bits
    return low <= scaled <= high and high - low <= slack


@settings(max_examples=30)
@given(st.sampled_from([32, 96, 128, 256]), st.floats(-200, 64))
def test_exp_bounds(bits, exponent):
    fixed = int(exponent * 2**40) << (bits - 32) >> 8
    exact = mpmath.exp(mpmath.mpf(fixed) / mpmath.mpf(2) ** bits)
    assert encloses(integers.exp_bounds(fixed, bits), exact, bits, 2 + exact)


@settings(max_examples=30)
@given(st.integers(1, 2**40), st.integers(0, 2**70))
def test_log_upper(denominator, extra):
    numerator = denominator + extra
    exact = mpmath.log(mpmath.mpf(numerator) / denominator) * mpmath.mpf(2) ** 101
    assert 0 <= integers.log_upper(numerator, denominator, 101) - exact <= 1.01


@settings(max_examples=30)
@given(st.floats(-30, 30))
def test_normal_cdf_bounds(x):
    for fixed in (int(x * 2**60) << 196, 0, 1, -1, 24 << 256, (24 << 256) + 1, -(24 << 256) - 1):
        exact = mpmath.ncdf(mpmath.mpf(fixed) / mpmath.mpf(2) ** 256)
        assert encloses(integers.normal_cdf_bounds(fixed, 256), exact, 256, 100)


def test_inverse_sqrt_tau_constant_is_exact():
    exact = mpmath.mpf(2) ** 256 / mpmath.sqrt(2 * mpmath.pi)
    assert int(mpmath.floor(exact)) == integers.INVERSE_SQRT_TAU


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
    spent, more = (delta_of(mpmath.mpf(one) / 2**20, exact(epsilon)) for one in (radius, radius + 1))
    assert spent <= exact(allowed)
    assert more > exact(allowed) * (1 - mpmath.mpf(10) ** -9)


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


def test_uniform_integers_are_drawn_again_beyond_the_last_whole_round():
    """2**32 is 1 more than a multiple of 3: the last word would make 0 too likely."""
    words = iter([b"\xff\xff\xff\xff", b"\xff\xff\xff\xfe"])
    assert uniform_below(3, NotForRealAnswers(lambda _size: next(words))) == 2
