"""The statistics of DPBLR (II-B1): XᵀX, Xᵀy and yᵀy with Laplace noise; pure ε.

The paper's sensitivity (3), from widths of bounds, is too small where 0 is not within them: x² of x in
[10, 11] moves by 21, not by 1. Here fields are scaled to [−1, 1] and features clipped, and the L1 distance
is the smaller of what the box and the norm allow.
"""

from functools import lru_cache

from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.core.quantise import UNIT, UNIT_BITS
from ldp_client.core.randomness import Source
from ldp_client.core.strips import laplace
from ldp_client.documents.rational import Rational
from ldp_client.mechanisms.base import Privacy
from ldp_client.mechanisms.tables.base import MULTIPLIER_BITS, TableMechanism, part
from ldp_client.mechanisms.tables.powers import power_distance
from ldp_client.mechanisms.tables.sensitivities import Ball, box_distance

HALF = Rational(1, 2)


class TableStatisticsLaplace(TableMechanism):
    """The upper triangle of Σ (x, y)(x, y)ᵀ, and Σx, Σy with an intercept, plus round(2**20 × Laplace(1)).

    With fourth moments half of ε is theirs: they and the second moments are two releases.
    """

    name = "table_statistics_laplace"
    law = "laplace"

    def _distance(self, budget: Privacy, size: int) -> tuple[int, Privacy]:
        del size
        levels = budget.epsilon.floor_scaled(1 << NOISE_BITS)
        return levels, Privacy(Rational(levels, 1 << NOISE_BITS), Rational(0))

    def _set_noise_of_sums(self, budget: Privacy) -> Privacy:
        if not self.products:
            return super()._set_noise_of_sums(budget)
        half = part(budget, HALF)
        pairs = super()._set_noise_of_sums(half)
        levels, powers = self._distance(half, len(self.products))
        room = self._room(levels, len(self.products))
        distance = power_distance(self.radius, len(self.features), self.intercept)
        fourth = (room << MULTIPLIER_BITS) // distance
        # A sum of three features is counted UNIT times, as the distance is.
        self.multipliers += [fourth << (UNIT_BITS * (4 - len(product))) for product in self.products]
        return Privacy(pairs.epsilon + powers.epsilon, pairs.delta)

    def _rounding(self) -> int:
        return len(self.coordinates)

    def _multipliers(self, room: int) -> list[int]:
        distance = l1_distance(self.radius, UNIT, len(self.features), self.intercept, self.average)
        return [(room << MULTIPLIER_BITS) // distance] * len(self.coordinates)

    def _noise(self, count: int, random: Source) -> list[int]:
        return laplace(count, random)


@lru_cache(maxsize=256)
def l1_distance(radius: int, unit: int, features: int, intercept: bool, average: int) -> int:
    """The L1 distance of two tables' statistics at most: what the box and what the ball allow."""
    box = box_distance(radius, unit, features, intercept, average)
    return min(box, Ball(radius, unit, features, intercept).distance(average))
