"""What a mechanism claims, as the curve that no event's two probabilities may cross."""

from math import inf, log
from statistics import NormalDist

from ldp_client.audit.gaussian import epsilon_of, largest_distance

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.mechanisms import Privacy

_NORMAL = NormalDist()


class Claim:
    """P(event | x) ≤ e^ε P(event | x′) + δ.

    limit: the largest `evidence` that is in order.
    """

    def __init__(self, privacy: "Privacy") -> None:
        self.epsilon, self.delta = float(privacy.epsilon), float(privacy.delta)
        self.limit = self.epsilon

    def evidence(self, low: float, high: float) -> float:
        """ε is at least this, for an event with probability ≥ low under x and ≤ high under x′."""
        if low - self.delta <= high:
            return 0.0
        return log((low - self.delta) / high) if high > 0 else inf

    def as_epsilon(self, evidence: float) -> float:
        """Evidence in nats of ε."""
        return evidence


class GaussianClaim(Claim):
    """Gaussian noise that meets (ε, δ): Φ⁻¹(P(event | x)) − Φ⁻¹(P(event | x′)) ≤ μ.

    The whole trade-off curve of the Gaussian mechanism (Dong, Roth & Su 2022) through (ε, δ): far more
    telling than the one inequality at δ, which no feasible number of samples could refute.
    """

    def __init__(self, privacy: "Privacy") -> None:
        super().__init__(privacy)
        self.limit = largest_distance(self.epsilon, self.delta)

    def evidence(self, low: float, high: float) -> float:
        """μ is at least this."""
        if low <= 0 or high >= 1:
            return 0.0
        if high <= 0 or low >= 1:
            return inf
        return max(_NORMAL.inv_cdf(low) - _NORMAL.inv_cdf(high), 0.0)

    def as_epsilon(self, evidence: float) -> float:
        """The ε that this μ means at the claim's δ."""
        return epsilon_of(evidence, self.delta)
