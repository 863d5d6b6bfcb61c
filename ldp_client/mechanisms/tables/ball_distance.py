"""How far apart the statistics of the Laplace mechanism can be where the norm binds: an L1 distance.

By Cauchy and Schwarz the upper triangle of a symmetric d×d matrix E has an L1 norm of at most
√(d + d(d−1)/4)·‖E‖, a vector of d entries √d times its L2 norm. For single records, ‖x‖ = ‖x′‖ = R is
the worst and, as the bound is convex in y, so is y = T; with x·x′ = τR² and y′ = −wT the distance is at most

    h(τ, w) = R²√((d² + 3d)/2 · (1 − τ²)) + RT√d·√(1 + w² + 2τw) + T²(1 − w²)
              [+ RT√(2d(1 − τ)) + T²(1 + w) with an intercept],   −1 ≤ τ, w ≤ 1.

Its maximum is found in integers, by halving cells on which each term is bounded by itself.
"""

import heapq

from ldp_client.core.integers import isqrt
from ldp_client.mechanisms.tables.sensitivities import root_above

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
        corner = max([w * w + 2 * t * w for t in (left, right) for w in (low, high)])
        whole = STEPS * STEPS
        lengths = self.gram * (isqrt(whole - tau * tau) + 1) + self.cross * (isqrt(whole + corner) + 1)
        rest = whole - least * least
        if self.intercept:
            lengths += self.cross * (isqrt(2 * STEPS * (STEPS - left)) + 1)
            rest += STEPS * (STEPS + high)
        return lengths // STEPS + self.square * rest // whole + 2
