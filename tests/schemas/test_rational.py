from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import Rational

fractions = st.fractions(max_denominator=10**12)


def as_rational(value: Fraction) -> Rational:
    return Rational(value.numerator, value.denominator)


@settings(max_examples=30)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=8, min_value=-(10**9), max_value=10**9))
def test_parse_reads_decimal_notation(value):
    parsed = Rational.parse(f"{value:f}")
    assert Fraction(parsed.numerator, parsed.denominator) == Fraction(value)


@pytest.mark.parametrize(("text", "value"), [("1e-6", "1/1000000"), ("-2.5E+3", "-2500"), ("007", "7")])
def test_parse_reads_exponents_and_signs(text, value):
    parsed = Rational.parse(text)
    assert Fraction(parsed.numerator, parsed.denominator) == Fraction(value)


OTHERS = ["", " 1", "+1", "1.", ".5", "1e", "e5", "1e5.0", "0x1", "1_000", "--1", "1e+-5", "nan", "1e61", "½"]


@pytest.mark.parametrize("text", [*OTHERS, "9" * 41, None, 1, 1.5])
def test_parse_rejects_other_notations(text):
    with pytest.raises(ValueError, match="decimal"):
        Rational.parse(text)


@settings(max_examples=30)
@given(fractions, fractions)
def test_arithmetic_agrees_with_fractions(left, right):
    a, b = as_rational(left), as_rational(right)
    assert a + b == as_rational(left + right)
    assert a - b == as_rational(left - right)
    assert (a < b, a <= b, a == b) == (left < right, left <= right, left == right)
    assert float(a) == float(left)
    assert a.floor_scaled(1 << 20) == left * (1 << 20) // 1


@settings(max_examples=30)
@given(st.integers(-(10**12), 10**12), st.integers(0, 12))
def test_decimals_print_exactly(digits, places):
    value = Rational(digits, 10**places)
    assert Rational.parse(str(value)) == value


def test_fractions_without_a_decimal_print_as_fractions():
    assert str(Rational(-2, 6)) == "-1/3"
