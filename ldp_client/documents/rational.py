"""Exact numbers: the decimals of documents."""

import re
from fractions import Fraction
from typing import Self

# A decimal, perhaps with an exponent.
DECIMAL = r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?"
MAX_DECIMAL_LENGTH = 40
MAX_DECIMAL_EXPONENT = 60


class Rational(Fraction):
    """A fraction that is written as a decimal. Sums and products of such numbers are plain fractions."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Self:
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
        return cls(text)

    def __str__(self) -> str:
        """Write the exact decimal if it has at most 40 places, else numerator/denominator."""
        for places in range(MAX_DECIMAL_LENGTH + 1):
            scaled = abs(self) * 10**places
            if scaled.denominator == 1:
                digits = str(scaled.numerator).zfill(places + 1)
                point = len(digits) - places
                sign = "-" if self < 0 else ""
                return f"{sign}{digits[:point]}.{digits[point:]}".rstrip(".")
        return super().__str__()
