from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import Rational


@settings(max_examples=30)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=8, min_value=-(10**9), max_value=10**9))
def test_parse_reads_decimal_notation(value):
    assert Rational.parse(f"{value:f}") == Fraction(value)


@settings(max_examples=30)
@given(st.integers(-(10**12), 10**12), st.integers(0, 12))
def test_decimals_print_exactly(digits, places):
    value = Rational(digits, 10**places)
    assert Rational.parse(str(value)) == value


@pytest.mark.parametrize(("text", "value"), [("1e-6", "1/1000000"), ("-2.5E+3", "-2500"), ("007", "7")])
def test_parse_reads_exponents_and_signs(text, value):
    assert Rational.parse(text) == Fraction(value)
    assert str(Rational(-2, 6)) == "-1/3"


def test_parse_rejects_other_notations():
    others = ["+1", "1.", ".5", "1e", "e5", "1e5.0", "0x1", "1_000", "--1", "1e+-5", "nan", "1e61", "½"]
    for text in ["", " 1", *others, "9" * 41, None, 1, 1.5]:
        with pytest.raises(ValueError, match="decimal"):
            Rational.parse(text)
