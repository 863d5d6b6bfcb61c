"""Tables with Gaussian noise: distances in L2, the analytic Gaussian mechanism (METHODS 1.5)."""

from ldp_client.core.calibration import gaussian_radius
from ldp_client.core.integers import isqrt
from ldp_client.core.strips import normal
from ldp_client.mechanisms.base import Privacy
from ldp_client.mechanisms.tables.base import TableMechanism

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.core.randomness import Source


class GaussianTable(TableMechanism):
    """round(2**20 × N(0, 1)) on every coordinate."""

    law = "gaussian"

    def _distance(self, budget: Privacy, size: int) -> "tuple[int, Privacy]":
        return gaussian_radius(budget.epsilon, budget.delta, size), budget

    def _rounding(self) -> int:
        return isqrt(len(self.coordinates) - 1) + 1

    def _noise(self, count: int, random: "Source") -> "list[int]":
        return normal(count, random)
