"""A mechanism's claim, as a curve that no event's two probabilities may cross, and bounds for them.

Shares are bounded by Chernoff's inequality in its relative-entropy form (Hoeffding 1963, Theorem 1), which
holds for every sample size. Gaussian noise claims a whole trade-off curve (METHODS 1.5).
"""

from collections.abc import Callable
from math import erfc, exp, inf, log, sqrt
from statistics import NormalDist

from ldp_client.mechanisms import Privacy

STEPS = 200
_NORMAL = NormalDist()


def lower_share(successes: int, trials: int, false_alarm: float) -> float:
    """Return a lower bound on a probability, which is wrong with at most the probability `false_alarm`."""
    seen = successes / trials
    if successes == 0:
        return 0.0

    def entropy(share: float) -> float:
        hit = seen * log(seen / share)
        return hit + (1 - seen) * log((1 - seen) / (1 - share)) if seen < 1 else hit

    return _last(lambda share: share == 0 or trials * entropy(share) >= -log(false_alarm), 0.0, seen)


def upper_share(successes: int, trials: int, false_alarm: float) -> float:
    """Return an upper bound on a probability, which is wrong with at most the probability `false_alarm`."""
    return 1 - lower_share(trials - successes, trials, false_alarm)


def delta_of(mu: float, epsilon: float) -> float:
    """Return δ of Gaussian noise at distance mu: Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle & Wang 2018)."""
    if mu <= 0:
        return 0.0
    likely, unlikely = (erfc(-x / sqrt(2)) / 2 for x in (mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu))
    return likely - exp(epsilon) * unlikely


def largest_distance(epsilon: float, delta: float) -> float:
    """Return the largest μ whose δ at ε is at most delta."""
    return _last(lambda mu: delta_of(mu, epsilon) <= delta, 0.0, 64.0)


def epsilon_of(mu: float, delta: float) -> float:
    """Return the ε that noise at distance mu gives with that delta."""
    return _last(lambda epsilon: delta_of(mu, epsilon) > delta, 0.0, 600.0)


def _last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the end of the part of [low, high] on which `holds` is true, rounded down."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class Claim:
    """P(event | x) ≤ e^ε P(event | x′) + δ.

    limit: the largest `evidence` that does not break the claim.
    """

    def __init__(self, privacy: Privacy) -> None:
        self.epsilon, self.delta = float(privacy.epsilon), float(privacy.delta)
        self.limit = self.epsilon

    def evidence(self, low: float, high: float) -> float:
        """Return a lower bound on ε, for an event with probability ≥ low under x and ≤ high under x′."""
        if low - self.delta <= high:
            return 0.0
        return log((low - self.delta) / high) if high > 0 else inf

    def as_epsilon(self, evidence: float) -> float:
        """Convert evidence to nats of ε."""
        return evidence


class GaussianClaim(Claim):
    """Gaussian noise that meets (ε, δ): Φ⁻¹(P(event | x)) − Φ⁻¹(P(event | x′)) ≤ μ.

    This is the whole trade-off curve of the Gaussian mechanism (Dong, Roth & Su 2022) through (ε, δ). It has
    far more power than the one inequality at δ, which no feasible number of samples could refute.
    """

    def __init__(self, privacy: Privacy) -> None:
        super().__init__(privacy)
        self.limit = largest_distance(self.epsilon, self.delta)

    def evidence(self, low: float, high: float) -> float:
        """Return a lower bound on μ."""
        if low <= 0 or high >= 1:
            return 0.0
        if high <= 0 or low >= 1:
            return inf
        return max(_NORMAL.inv_cdf(low) - _NORMAL.inv_cdf(high), 0.0)

    def as_epsilon(self, evidence: float) -> float:
        """Return the ε that this μ means at the claim's δ."""
        return epsilon_of(evidence, self.delta)
