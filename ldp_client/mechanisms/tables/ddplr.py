"""The statistics of DDPLR (eq. 2 and 3, B.2): S = XᵀX unscaled and z = Xᵀy, isotropic Gaussian noise.

The paper's sensitivity √(X⁴ + X²Y²) is that of adding or removing a record. This is the one of its own
Definition 2.1, in which a record is replaced (METHODS 1.1), and with averaging the one that is true.
"""

from ldp_client.core.quantise import UNIT
from ldp_client.mechanisms.tables.base import MULTIPLIER_BITS
from ldp_client.mechanisms.tables.gaussian import GaussianTable
from ldp_client.mechanisms.tables.sensitivities import ddplr_sensitivity


class TableStatisticsDdplr(GaussianTable):
    """The upper triangle of XᵀX and Xᵀy; X has a constant column where there is an intercept, without n."""

    name = "table_statistics_ddplr"
    has_squares = False

    def _multipliers(self, room: int) -> "list[int]":
        diameter = ddplr_sensitivity(self.radius, UNIT, self.intercept, self.average)
        return [(room << MULTIPLIER_BITS) // diameter] * len(self.coordinates)
