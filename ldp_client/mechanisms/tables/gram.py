"""The exact sum of uuᵀ over a table's records, or over groups of k of them, in bounded memory."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

# Products of two such limbs, added over so many rows, are below 2**53: exact in floating point.
LIMB_BITS = 20
EXACT_ROWS = 1 << (53 - 2 * LIMB_BITS)


class Gram:
    """Rows are lists (or arrays) of integers; those that do not fill a last group are left out.

    wide: entries of arrays are up to two limbs long, as those of groups are. total: the upper triangle's
    sums, by row. groups: how many vectors u were summed.
    """

    def __init__(self, width: int, average: int, wide: bool = False) -> None:
        self.average = average
        self.wide = wide or average > 1
        self.groups = 0
        self.total = [[0] * width for _ in range(width)]
        self._open = [0] * width
        self._filled = 0

    def add_rows(self, rows: "Iterable[list[int]]") -> None:
        """Add records one by one."""
        for row in rows:
            if self.average > 1:
                self._open = [one + other for one, other in zip(self._open, row)]
                self._filled += 1
                if self._filled < self.average:
                    continue
                row, self._open, self._filled = self._open, [0] * len(row), 0
            self._add_vector(row)

    def _add_vector(self, vector: "list[int]") -> None:
        self.groups += 1
        for i, entry in enumerate(vector):
            sums = self.total[i]
            for j in range(i, len(vector)):
                sums[j] += entry * vector[j]

    def add_array(self, rows: "Integers") -> None:
        """Add the rows of an array, entries of at most 2**LIMB_BITS (its square if wide): the same sums."""
        if self.average > 1:
            head = min(len(rows), (self.average - self._filled) % self.average)
            self.add_rows(rows[:head].tolist())
            whole = (len(rows) - head) // self.average * self.average
            tail = rows[head + whole :]
            grouped = rows[head : head + whole].reshape(-1, self.average, rows.shape[1])
            self._add_vectors(grouped.sum(axis=1))
            self.add_rows(tail.tolist())
        else:
            self._add_vectors(rows)

    def _add_vectors(self, vectors: "Integers") -> None:
        self.groups += len(vectors)
        for start in range(0, len(vectors), EXACT_ROWS):
            chunk = vectors[start : start + EXACT_ROWS]
            high = chunk >> LIMB_BITS if self.wide else 0 * chunk
            low = chunk - (high << LIMB_BITS)
            self._add_products(low, low, 0)
            if high.any():
                for left, right, shift in ((high, low, 1), (low, high, 1), (high, high, 2)):
                    self._add_products(left, right, shift * LIMB_BITS)

    def _add_products(self, left: "Integers", right: "Integers", shift: int) -> None:
        products: "Any" = left.astype(float).T @ right.astype(float)
        for i, sums in enumerate(products.tolist()):
            for j in range(i, len(sums)):
                self.total[i][j] += int(sums[j]) << shift
