"""Numbers whose point or comma may be a mark between thousands: a column of them has two readings."""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_MARKED = re.compile(r"[+-]?(\d)\d{0,2}([.,]\d{3})+")
_PLAIN = re.compile(r"[+-]?\d{1,3}")


class TwoReadings:
    """Whether all numbers of a column that have a mark have exactly three digits behind it.

    Others have no more than three: whoever marks thousands marks all of them.

    Args:
        blanks: what stands, in small letters, where there is no value.

    Attributes:
        first: the first number with a mark; "" without one, or where another number shows that marks are
            decimal points.
    """

    def __init__(self, blanks: "Collection[str]") -> None:
        self.blanks = blanks
        self.first = ""
        self._is_settled = False

    def look_at(self, cells: "Iterable[str]") -> None:
        """Look at more of the column's cells."""
        for cell in () if self._is_settled else cells:
            text = cell.strip()
            if text.lower() in self.blanks or _PLAIN.fullmatch(text):
                continue
            found = _MARKED.fullmatch(text)
            # A zero of any script: `float` reads their digits too.
            if not found or not int(found[1]):
                self.first, self._is_settled = "", True
                return
            self.first = self.first or text
