import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldp_client.core import integers


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
    fixed = int(x * 2**60) << 196
    exact = mpmath.ncdf(mpmath.mpf(fixed) / mpmath.mpf(2) ** 256)
    assert encloses(integers.normal_cdf_bounds(fixed, 256), exact, 256, 100)


@pytest.mark.parametrize("x", [0, 1, -1, 24 << 256, (24 << 256) + 1, -(24 << 256) - 1])
def test_normal_cdf_bounds_at_edges(x):
    exact = mpmath.ncdf(mpmath.mpf(x) / mpmath.mpf(2) ** 256)
    low, high = integers.normal_cdf_bounds(x, 256)
    assert low <= exact * mpmath.mpf(2) ** 256 <= high


def test_inverse_sqrt_tau_constant_is_exact():
    exact = mpmath.mpf(2) ** 256 / mpmath.sqrt(2 * mpmath.pi)
    assert int(mpmath.floor(exact)) == integers.INVERSE_SQRT_TAU
