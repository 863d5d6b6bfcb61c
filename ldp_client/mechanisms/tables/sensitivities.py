"""How far apart the statistics of two tables that differ in one record can be: integers, rounded up.

A record is (x, y) with ‖x‖ ≤ R and |y| ≤ T, here `radius` and `unit` (the integer for 1). Its
vector is v = (κ, z), z of x and y. With averaging (DDPLR B.1) u = Σ v over a group of k records and the
statistic is Σ uuᵀ over groups (k times the published one). Replacing a record moves u by at most 2‖z‖
*and multiplies that by the other k − 1 records*: so the sensitivity is not as for single records (DDPLR
B.1), but up to 2√2 times as large. Proofs, with D = u − u′, M = u + u′ and
uuᵀ − u′u′ᵀ = (DMᵀ + MDᵀ)/2: ‖uuᵀ − u′u′ᵀ‖² = (‖D‖²‖M‖² + (D·M)²)/2.

Removing a record changes the released sums of k = 1 as replacing it by (0, 0) does: every bound for
k = 1 holds under add/remove as well.

With Laplace noise the distance is an L1 distance; `Ball` bounds it where the norm binds.

By Cauchy and Schwarz the upper triangle of a symmetric d×d matrix E has an L1 norm of at most
√(d + d(d−1)/4)·‖E‖, a vector of d entries √d times its L2 norm. For single records, ‖x‖ = ‖x′‖ = R is
the worst and, as the bound is convex in y, so is y = T; with x·x′ = τR² and y′ = −wT the distance is at most

    h(τ, w) = R²√((d² + 3d)/2 · (1 − τ²)) + RT√d·√(1 + w² + 2τw) + T²(1 − w²)
              [+ RT√(2d(1 − τ)) + T²(1 + w) with an intercept],   −1 ≤ τ, w ≤ 1.

Its maximum is found in integers, by halving cells on which each term is bounded by itself.
"""

import heapq
from math import isqrt

from ldp_client.core.integers import ceil_div


def root_above(square: int) -> int:
    """An integer not below the square root."""
    return isqrt(square) + 1


def svec_sensitivity(constant: int, square_norm: int, average: int) -> int:
    """L2 distance of svec(uuᵀ) without its known (κk)²; ‖z‖² ≤ square_norm.

    k = 1: √2 (κ² + ‖z‖²), METHODS 1.3. k ≥ 2: reached where all others are equal to z and the record
    goes from z to −z: ‖D‖ = 2‖z‖, M = 2(kκ, (k−1)z).
    """
    square_constant = constant * constant
    if average == 1:
        return root_above(2 * (square_constant + square_norm) ** 2)
    others = 4 * (average - 1) ** 2 * square_norm
    return root_above(4 * square_norm * (others + 2 * average * average * square_constant))


def ddplr_sensitivity(radius: int, unit: int, intercept: bool, average: int) -> int:
    """L2 distance of (upper triangle of XᵀX, Xᵀy), X with a constant column where there is an intercept.

    k = 1: METHODS 1.1 with equal variances and without y². With an intercept 2R⁴ + 4R²T² + 4T⁴ (T for the
    constant): the sum is convex in y and y′, so |y| = |y′| = T; of equal signs it is 8R²T² or less
    than this; of opposite ones it falls with (x·x′)² and grows with ‖x‖. For one feature an upper bound.
    k ≥ 2: each part is largest where all others are equal to (x, y), and it becomes (−x, −y).
    """
    r2, t2 = radius * radius, unit * unit
    if average > 1:
        products = 16 * (average - 1) ** 2 * r2 * (r2 + t2)
        sums = 4 * average * average * t2 * (r2 + t2) if intercept else 0
        return root_above(products + sums)
    if intercept:
        return root_above(2 * r2 * r2 + 4 * r2 * t2 + 4 * t2 * t2)
    same_size = 2 * r2 * r2 + r2 * t2
    opposite = 2 * r2 * r2 + 2 * r2 * t2 + t2 * t2 // 2 + 1 if t2 <= 2 * r2 else 4 * r2 * t2
    return root_above(max(same_size, opposite))


def box_distance(radius: int, unit: int, features: int, intercept: bool, average: int) -> int:
    """L1 distance of (upper triangle of XᵀX, Xᵀy, yᵀy), fields of size at most r_i: r_i = R or 1, T.

    With α = |D|/2, β = |M|/2: α_i + β_i ≤ r_i and |u_iu_j − u′_iu′_j| ≤ 2(α_iβ_j + β_iα_j), so their sum is
    at most 2AB + 2Σα_iβ_i, A = Σα, B = Σβ; and 2A more with an intercept. k = 1: (s² + Σr²)/2, s = Σr,
    reached by a record of ones against one of zeros (DPBLR 3 for widths of 1); with an intercept the
    best α_i is (r_i + 1/(p + 1))/2 for p fields. k ≥ 2: α_i = r_i, β_i = (k − 1)r_i.
    """
    side, fields = min(radius, unit), features + 1
    total = features * side + unit
    products = ceil_div(total * total + features * side * side + unit * unit, 2)
    if average > 1:
        return 4 * (average - 1) * products + (2 * average * total * unit if intercept else 0)
    sums = total * unit + ceil_div(unit * unit * fields, 2 * (fields + 1)) if intercept else 0
    return products + sums


# τ and w are counted in units of 1/STEPS.
STEPS = 1 << 16
# The bound may be this share above the maximum.
SLACK_BITS = 9


class Ball:
    """h for records with ‖x‖ ≤ radius and |y| ≤ unit."""

    def __init__(self, radius: int, unit: int, features: int, intercept: bool) -> None:
        self.gram = root_above((features * features + 3 * features) // 2 * radius**4)
        self.cross = root_above(features * radius * radius * unit * unit)
        self.square = unit * unit
        self.intercept = intercept

    def distance(self, average: int) -> int:
        """An integer not below the largest L1 distance.

        k ≥ 2: uuᵀ − u′u′ᵀ is at most 4(k−1)R² of x, 4(k−1)RT of xy, 4(k−1)T² of y²; the sums 2kR and 2kT.
        """
        if average == 1:
            return self._largest()
        gram = root_above(self.gram * self.gram // 2 + 1)
        products = 4 * (average - 1) * (gram + self.cross + self.square)
        return products + (2 * average * (self.cross + self.square) if self.intercept else 0)

    def _largest(self) -> int:
        """The maximum of h from above, best cells first."""
        start = (-STEPS, STEPS, -STEPS, STEPS)
        cells = [(-self._above(*start), start)]
        reached = 0
        while True:
            bound, (left, right, low, high) = heapq.heappop(cells)
            middle, centre = (left + right) // 2, (low + high) // 2
            reached = max(reached, self._above(middle, middle, centre, centre))
            if -bound <= reached + (reached >> SLACK_BITS) or right - left + high - low <= 2:
                return -bound
            wide = right - left >= high - low
            halves = (
                ((left, middle, low, high), (middle, right, low, high))
                if wide
                else ((left, right, low, centre), (left, right, centre, high))
            )
            for cell in halves:
                heapq.heappush(cells, (-self._above(*cell), cell))

    def _above(self, left: int, right: int, low: int, high: int) -> int:
        """h at most, for τ from left to right and w from low to high. 1 + w² + 2τw is largest at a corner."""
        tau = 0 if left <= 0 <= right else min(abs(left), abs(right))
        least = 0 if low <= 0 <= high else min(abs(low), abs(high))
        corner = max(w * w + 2 * t * w for t in (left, right) for w in (low, high))
        whole = STEPS * STEPS
        lengths = self.gram * (isqrt(whole - tau * tau) + 1) + self.cross * (isqrt(whole + corner) + 1)
        rest = whole - least * least
        if self.intercept:
            lengths += self.cross * (isqrt(2 * STEPS * (STEPS - left)) + 1)
            rest += STEPS * (STEPS + high)
        return lengths // STEPS + self.square * rest // whole + 2
