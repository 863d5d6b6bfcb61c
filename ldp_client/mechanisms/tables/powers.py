"""Exact sums of products over a table's records, or over groups of k of them, in bounded memory.

The sums of products of two entries of u make Σ uuᵀ. A product of three or four features (DPBLR II-B5) is a
tuple of features, counted from 1, in ascending order. With an intercept, products of three are needed too;
products of one and two are among the second moments. This module also bounds how far apart two tables' sums
can be.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import comb, factorial
from operator import mul
from typing import TYPE_CHECKING, Any

from ldp_client.core.integers import ceil_div
from ldp_client.core.quantise import UNIT
from ldp_client.mechanisms.tables.sensitivities import root_above

if TYPE_CHECKING:
    from ldp_client.columns.arrays import Integers


# Products of two such limbs, added over so many rows, are below 2**53: exact in floating point.
LIMB_BITS = 20
EXACT_ROWS = 1 << (53 - 2 * LIMB_BITS)


class Gram:
    """Exact sums of uuᵀ over rows u, or over sums u of `average` rows. An incomplete group is left out.

    total: the upper triangle's sums, by row. groups: how many vectors u were summed.
    """

    def __init__(self, width: int, average: int) -> None:
        self.average = average
        self.groups = 0
        self.total = [[0] * width for _ in range(width)]
        # Rows that wait for the rest of their group.
        self._rest: Any = None

    def add(self, rows: Integers) -> None:
        """Add rows whose entries have at most two limbs, as their sums over a group."""
        import numpy as np

        if self.average > 1:
            rows = rows if self._rest is None else np.concatenate([self._rest, rows])
            whole = len(rows) // self.average * self.average
            rows, self._rest = rows[:whole], rows[whole:]
            rows = rows.reshape(-1, self.average, rows.shape[1]).sum(axis=1)
        self.groups += len(rows)
        for start in range(0, len(rows), EXACT_ROWS):
            chunk = rows[start : start + EXACT_ROWS]
            high = chunk >> LIMB_BITS
            low = chunk - (high << LIMB_BITS)
            for left, right, shift in ((low, low, 0), (high, low, 1), (low, high, 1), (high, high, 2)):
                products: Any = left.astype(float).T @ right.astype(float)
                for i, sums in enumerate(products.tolist()):
                    for k in range(i, len(sums)):
                        self.total[i][k] += int(sums[k]) << shift * LIMB_BITS


def products_of(features: int, intercept: bool) -> list[tuple[int, ...]]:
    """Return all products of four features, and of three with an intercept."""
    orders = (3, 4) if intercept else (4,)
    return [one for order in orders for one in combinations_with_replacement(range(1, features + 1), order)]


class PowerSums:
    """Exact sums of products of up to four features: of second moments of x and of all x_i x_j."""

    def __init__(self, features: int) -> None:
        self.pairs = list(combinations_with_replacement(range(1, features + 1), 2))
        factors: list[tuple[int, ...]] = [*((i,) for i in range(1, features + 1)), *self.pairs]
        self.places = {factor: place for place, factor in enumerate(factors)}
        self.features = features
        self.gram = Gram(len(factors), 1)

    def add(self, rows: Integers) -> None:
        """Add records (1, x, y)."""
        import numpy as np

        first, second = np.asarray(self.pairs).T
        for start in range(0, len(rows), EXACT_ROWS):
            part = rows[start : start + EXACT_ROWS]
            products = part[:, first] * part[:, second]
            self.gram.add(np.column_stack([part[:, 1 : self.features + 1], products]))

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
    """Return Σ α! over all products of this order: the coefficient of t^order in (Σ k! t^k)^features."""
    factorials = [factorial(power) for power in range(order + 1)]
    sums = [1] + [0] * order
    for _ in range(features):
        sums = [sum(map(mul, factorials, sums[power::-1])) for power in range(order + 1)]
    return sums[order]
