"""The mechanisms for tables: their statistics, and how far apart two tables' can be.

Gaussian noise has L2 distances and the analytic Gaussian mechanism (METHODS 1.5), Laplace noise L1 distances.
"""

from fractions import Fraction
from functools import lru_cache
from math import isqrt

from ldp_client.core.quantise import UNIT, UNIT_BITS
from ldp_client.mechanisms.base import Privacy, register
from ldp_client.mechanisms.tables.base import MULTIPLIER_BITS, TableMechanism, part
from ldp_client.mechanisms.tables.powers import power_distance
from ldp_client.mechanisms.tables.sensitivities import Ball, box_distance, ddplr_sensitivity, svec_sensitivity

HALF = Fraction(1, 2)


@lru_cache(maxsize=256)
def l1_distance(radius: int, unit: int, features: int, intercept: bool, average: int) -> int:
    """The L1 distance of two tables' statistics at most: what the box and what the ball allow."""
    box = box_distance(radius, unit, features, intercept, average)
    return min(box, Ball(radius, unit, features, intercept).distance(average))


@register
class TableStatistics(TableMechanism):
    """The upper triangle of Σ vvᵀ, off-diagonal entries times √2, all with the same noise (METHODS 1.3).

    v = (κ, x, c·y), κ = c = R/√2, as `gaussian_statistics` has it for one record, or (x, c·y) without
    intercept.
    """

    name = "table_statistics"
    law = "gaussian"

    def _multipliers(self, room: int) -> list[int]:
        weight = isqrt(self.radius * self.radius // 2)
        constant = weight if self.intercept else 0
        square_norm = self.radius * self.radius + weight * weight
        diameter = svec_sensitivity(constant, square_norm, self.average)
        weights = [weight, *[UNIT] * len(self.features), weight]
        # Rounded down, entry by entry, so that no difference of two statistics grows.
        exact = [
            (room << MULTIPLIER_BITS) * weights[i] * weights[j] // (UNIT * UNIT * diameter)
            for i, j in self.coordinates
        ]
        return [
            multiplier if i == j else isqrt(2 * multiplier * multiplier)
            for (i, j), multiplier in zip(self.coordinates, exact)
        ]


@register
class TableStatisticsDdplr(TableMechanism):
    """The upper triangle of XᵀX and Xᵀy; X has a constant column where there is an intercept, without n.

    The statistics of DDPLR (eq. 2 and 3, B.2). The paper's sensitivity √(X⁴ + X²Y²) is for adding or
    removing a record. This sensitivity follows the paper's Definition 2.1, in which a record is replaced
    (METHODS 1.1), and is the true one with averaging.
    """

    name = "table_normal_equations"
    law = "gaussian"
    has_squares = False

    def _multipliers(self, room: int) -> list[int]:
        diameter = ddplr_sensitivity(self.radius, UNIT, self.intercept, self.average)
        return [(room << MULTIPLIER_BITS) // diameter] * len(self.coordinates)


@register
class TableStatisticsLaplace(TableMechanism):
    """The upper triangle of Σ (x, y)(x, y)ᵀ, and Σx, Σy with an intercept, plus round(2**20 × Laplace(1)).

    The statistics of DPBLR (II-B1). The paper's sensitivity (3), from widths of bounds, is too small where 0
    is not within them: x² of x in [10, 11] moves by 21, not by 1. Here fields are scaled to [−1, 1] and
    features clipped. With fourth moments half of ε is theirs: they and the second moments are two releases.
    """

    name = "table_statistics_laplace"
    law = "laplace"

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

    def _multipliers(self, room: int) -> list[int]:
        distance = l1_distance(self.radius, UNIT, len(self.features), self.intercept, self.average)
        return [(room << MULTIPLIER_BITS) // distance] * len(self.coordinates)
