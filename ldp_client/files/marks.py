"""Numbers whose point or comma may separate thousands: a column of such numbers is ambiguous."""

import re
from collections.abc import Collection, Iterable

_MARKED = re.compile(r"[+-]?(\d)\d{0,2}([.,]\d{3})+")
_PLAIN = re.compile(r"[+-]?\d{1,3}")


class TwoReadings:
    """A check for a column in which every mark (point or comma) is followed by exactly three digits.

    Its other numbers have at most three digits: if thousands are separated, all of them are.

    Args:
        blanks: texts for a missing value, in lower case.

    Attributes:
        first: the first number with a mark; "" without such a number, or if another number shows that marks
            are decimal points.
    """

    def __init__(self, blanks: Collection[str]) -> None:
        self.blanks = blanks
        self.first = ""
        self._is_settled = False

    def look_at(self, cells: Iterable[str]) -> None:
        """Look at more of the column's cells."""
        for cell in () if self._is_settled else cells:
            text = cell.strip()
            if text.lower() in self.blanks or _PLAIN.fullmatch(text):
                continue
            found = _MARKED.fullmatch(text)
            # A leading zero, in any script: `float` reads digits of all scripts.
            if not found or not int(found[1]):
                self.first, self._is_settled = "", True
                return
            self.first = self.first or text
