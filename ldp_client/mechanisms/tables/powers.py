"""Exact sums of products over a table's records, or over groups of k of them, in bounded memory.

Of two entries of u they are the sum of uuᵀ. Of three and four features (DPBLR II-B5) a product is a tuple
of features, counted from 1, in ascending order; beside an intercept those of three are wanted too, those of
two and one are among the second moments. How far apart two tables' sums can be is said here as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement
from math import comb, factorial
from typing import TYPE_CHECKING, Any

from ldp_client.core.integers import ceil_div
from ldp_client.core.quantise import UNIT
from ldp_client.mechanisms.tables.sensitivities import root_above

if TYPE_CHECKING:
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

    def add_rows(self, rows: Iterable[list[int]]) -> None:
        """Add records one by one."""
        for row in rows:
            if self.average > 1:
                self._open = [one + other for one, other in zip(self._open, row)]
                self._filled += 1
                if self._filled < self.average:
                    continue
                row, self._open, self._filled = self._open, [0] * len(row), 0
            self._add_vector(row)

    def _add_vector(self, vector: list[int]) -> None:
        self.groups += 1
        for i, entry in enumerate(vector):
            sums = self.total[i]
            for j in range(i, len(vector)):
                sums[j] += entry * vector[j]

    def add_array(self, rows: Integers) -> None:
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

    def _add_vectors(self, vectors: Integers) -> None:
        self.groups += len(vectors)
        for start in range(0, len(vectors), EXACT_ROWS):
            chunk = vectors[start : start + EXACT_ROWS]
            high = chunk >> LIMB_BITS if self.wide else 0 * chunk
            low = chunk - (high << LIMB_BITS)
            self._add_products(low, low, 0)
            if high.any():
                for left, right, shift in ((high, low, 1), (low, high, 1), (high, high, 2)):
                    self._add_products(left, right, shift * LIMB_BITS)

    def _add_products(self, left: Integers, right: Integers, shift: int) -> None:
        products: Any = left.astype(float).T @ right.astype(float)
        for i, sums in enumerate(products.tolist()):
            for j in range(i, len(sums)):
                self.total[i][j] += int(sums[j]) << shift


def products_of(features: int, intercept: bool) -> list[tuple[int, ...]]:
    """All products of three (beside an intercept) and of four features."""
    orders = (3, 4) if intercept else (4,)
    return [one for order in orders for one in combinations_with_replacement(range(1, features + 1), order)]


class PowerSums:
    """Exact sums of products of up to four features: of second moments of x and of all x_i x_j."""

    def __init__(self, features: int) -> None:
        self.pairs = list(combinations_with_replacement(range(1, features + 1), 2))
        factors: list[tuple[int, ...]] = [*((i,) for i in range(1, features + 1)), *self.pairs]
        self.places = {factor: place for place, factor in enumerate(factors)}
        self.features = features
        self.gram = Gram(len(factors), 1, wide=True)

    def add_rows(self, rows: Iterable[list[int]]) -> Iterator[list[int]]:
        """Add the records (1, x, y) that are read through it."""
        for row in rows:
            self.gram.add_rows([[*row[1 : self.features + 1], *(row[i] * row[j] for i, j in self.pairs)]])
            yield row

    def add_array(self, rows: Integers) -> None:
        """`add_rows` of an array: the same sums."""
        import numpy as np

        first, second = np.asarray(self.pairs).T
        for start in range(0, len(rows), EXACT_ROWS):
            part = rows[start : start + EXACT_ROWS]
            products = part[:, first] * part[:, second]
            self.gram.add_array(np.column_stack([part[:, 1 : self.features + 1], products]))

    def total(self, product: tuple[int, ...]) -> int:
        """The sum of one product of three or four features, in units of UNIT to the −3 or −4."""
        one, other = sorted((self.places[product[:-2]], self.places[product[-2:]]))
        return self.gram.total[one][other]


def power_distance(radius: int, features: int, intercept: bool) -> int:
    """The L1 distance of two tables' sums at most, a record replaced: in units of UNIT⁻⁴, rounded up.

    Sums of three features, which have a factor of UNIT less, count UNIT times. Of each order the smaller of
    two bounds. The box: with |x_i| ≤ r = min(R, 1) a product is within [−r^k, r^k], or within [0, r⁴] if all
    its exponents are even. The ball, ‖x‖, ‖x′‖ ≤ R: with c_α = k!/α! the multinomial coefficient of x^α,
    Σ c_α x^α x′^α = (x·x′)^k, so by Cauchy and Schwarz

        Σ|x^α − x′^α| ≤ √(Σ 1/c_α) · √(Σ c_α (x^α − x′^α)²) = √(Σ 1/c_α) · √(‖x‖^2k + ‖x′‖^2k − 2(x·x′)^k),

    where the last root is at most √2·R⁴ for k = 4, as (x·x′)⁴ ≥ 0, and 2R³ for k = 3. Removing a record is
    replacing it by zeros: the same holds under add/remove.
    """
    side = min(radius, UNIT)
    squares = comb(features + 1, 2)
    box = (2 * comb(features + 3, 4) - squares) * side**4
    ball = root_above(ceil_div(2 * _exponents(features, 4) * radius**8, factorial(4)))
    distance = min(box, ball)
    if intercept:
        box = 2 * comb(features + 2, 3) * side**3
        ball = root_above(ceil_div(4 * _exponents(features, 3) * radius**6, factorial(3)))
        distance += UNIT * min(box, ball)
    return distance


def _exponents(features: int, order: int) -> int:
    """Σ α! over all products of this order: by how many features a product has, and how often each."""
    shapes = {3: ((3,), (2, 1), (1, 1, 1)), 4: ((4,), (3, 1), (2, 2), (2, 1, 1), (1, 1, 1, 1))}[order]
    total = 0
    for shape in shapes:
        arrangements, value = factorial(len(shape)), 1
        for times in set(shape):
            arrangements //= factorial(shape.count(times))
        for times in shape:
            value *= factorial(times)
        total += comb(features, len(shape)) * arrangements * value
    return total
