"""Tables with Gaussian noise: distances in L2, the analytic Gaussian mechanism (METHODS 1.5).

Our default is svec(Σ vvᵀ) with isotropic noise (METHODS 1.3): v = (κ, x, c·y), κ = c = R/√2, as
`gaussian_statistics` has it for one record, or (x, c·y) without intercept.

The statistics of DDPLR (eq. 2 and 3, B.2) are S = XᵀX unscaled and z = Xᵀy. The paper's sensitivity
√(X⁴ + X²Y²) is that of adding or removing a record. The one here is of its own Definition 2.1, in which a
record is replaced (METHODS 1.1), and with averaging the one that is true.
"""

from ldp_client.core.integers import isqrt
from ldp_client.core.noise_levels import gaussian_radius
from ldp_client.core.quantise import UNIT
from ldp_client.core.randomness import Source
from ldp_client.core.strips import normal
from ldp_client.mechanisms.base import Privacy
from ldp_client.mechanisms.tables.base import MULTIPLIER_BITS, TableMechanism
from ldp_client.mechanisms.tables.sensitivities import ddplr_sensitivity, svec_sensitivity


class GaussianTable(TableMechanism):
    """round(2**20 × N(0, 1)) on every coordinate."""

    law = "gaussian"

    def _distance(self, budget: Privacy, size: int) -> tuple[int, Privacy]:
        return gaussian_radius(budget.epsilon, budget.delta, size), budget

    def _rounding(self) -> int:
        return isqrt(len(self.coordinates) - 1) + 1

    def _noise(self, count: int, random: Source) -> list[int]:
        return normal(count, random)


class TableStatistics(GaussianTable):
    """The upper triangle of Σ vvᵀ, off-diagonal entries times √2, all with the same noise."""

    name = "table_statistics"

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


class TableStatisticsDdplr(GaussianTable):
    """The upper triangle of XᵀX and Xᵀy; X has a constant column where there is an intercept, without n."""

    name = "table_normal_equations"
    has_squares = False

    def _multipliers(self, room: int) -> list[int]:
        diameter = ddplr_sensitivity(self.radius, UNIT, self.intercept, self.average)
        return [(room << MULTIPLIER_BITS) // diameter] * len(self.coordinates)
