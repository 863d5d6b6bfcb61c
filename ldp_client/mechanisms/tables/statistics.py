"""Our default for a holder: svec(Σ vvᵀ) with isotropic Gaussian noise (METHODS 1.3).

v = (κ, x, c·y), κ = c = R/√2, as `gaussian_statistics` has it for one record, or (x, c·y) without intercept.
"""

from ldp_client.core.integers import isqrt
from ldp_client.core.quantise import UNIT
from ldp_client.mechanisms.tables.base import MULTIPLIER_BITS
from ldp_client.mechanisms.tables.gaussian import GaussianTable
from ldp_client.mechanisms.tables.sensitivities import svec_sensitivity


class TableStatistics(GaussianTable):
    """The upper triangle of Σ vvᵀ, off-diagonal entries times √2, all with the same noise."""

    name = "table_statistics"

    def _multipliers(self, room: int) -> "list[int]":
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
