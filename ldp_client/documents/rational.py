"""Exact numbers: decimal strings of documents, privacy parameters."""

import re
from fractions import Fraction
from typing import Union

Exact = Union["Rational", int]

# A decimal, perhaps with an exponent.
DECIMAL = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
MAX_DECIMAL_LENGTH = 40
MAX_DECIMAL_EXPONENT = 60


def _gcd(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


class Rational:
    """An exact fraction in lowest terms.

    A small stand-in for fractions.Fraction, which microcontrollers do not have; it has the same
    `numerator` and `denominator`, so Fraction(r.numerator, r.denominator) converts it.

    Args:
        numerator: any integer.
        denominator: any integer but zero.

    Attributes:
        numerator: in lowest terms; it carries the sign.
        denominator: in lowest terms, at least 1.

    Raises:
        ZeroDivisionError: the denominator is zero.
    """

    def __init__(self, numerator: int, denominator: int = 1) -> None:
        if denominator == 0:
            raise ZeroDivisionError("denominator is zero")
        if denominator < 0:
            numerator, denominator = -numerator, -denominator
        divisor = _gcd(abs(numerator), denominator)
        self.numerator = numerator // divisor
        self.denominator = denominator // divisor

    @classmethod
    def parse(cls, text: str) -> "Rational":
        """Read a decimal exactly, such as "-0.5" or "1e-6".

        Args:
            text: at most 40 characters, with an exponent within ±60.

        Returns:
            The same number as a fraction.

        Raises:
            ValueError: the text is anything else.
        """
        is_short = isinstance(text, str) and len(text) <= MAX_DECIMAL_LENGTH
        is_decimal = is_short and re.fullmatch(DECIMAL, text) is not None
        if not is_decimal or abs(int(text.lower().partition("e")[2] or 0)) > MAX_DECIMAL_EXPONENT:
            raise ValueError("not a decimal number")
        exact = Fraction(text)
        return cls(exact.numerator, exact.denominator)

    def floor_scaled(self, scale: int) -> int:
        """Scale the fraction by an integer and round down.

        Args:
            scale: the integer.

        Returns:
            The largest integer not above self × scale.
        """
        return self.numerator * scale // self.denominator

    def __float__(self) -> float:
        return self.numerator / self.denominator

    def __str__(self) -> str:
        """Write the exact decimal if it has at most 40 digits, else numerator/denominator."""
        for places in range(41):
            scaled = self.numerator * 10**places
            if scaled % self.denominator == 0:
                return _place_point(scaled // self.denominator, places)
        return f"{self.numerator}/{self.denominator}"

    def __repr__(self) -> str:
        return f"Rational({self.numerator}, {self.denominator})"

    def __hash__(self) -> int:
        return hash((self.numerator, self.denominator))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            other = Rational(other)
        if not isinstance(other, Rational):
            return False
        return self.numerator == other.numerator and self.denominator == other.denominator

    def __lt__(self, other: Exact) -> bool:
        return self.numerator * other.denominator < other.numerator * self.denominator

    def __le__(self, other: Exact) -> bool:
        return self.numerator * other.denominator <= other.numerator * self.denominator

    def __add__(self, other: "Rational") -> "Rational":
        numerator = self.numerator * other.denominator + other.numerator * self.denominator
        return Rational(numerator, self.denominator * other.denominator)

    def __mul__(self, other: "Rational") -> "Rational":
        return Rational(self.numerator * other.numerator, self.denominator * other.denominator)

    def __sub__(self, other: "Rational") -> "Rational":
        return self + Rational(-other.numerator, other.denominator)


def _place_point(digits: int, places: int) -> str:
    sign, text = ("-", str(-digits)) if digits < 0 else ("", str(digits))
    if places == 0:
        return sign + text
    text = "0" * (places + 1 - len(text)) + text
    return f"{sign}{text[:-places]}.{text[-places:]}"
