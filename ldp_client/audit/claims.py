"""A mechanism's claim, as a curve that no event's two probabilities may cross, and bounds for them.

Shares are bounded by Clopper & Pearson (1934). Tails are accurate to about 1e-12; bounds are moved outwards
by 1e-9 of themselves to cover it. Gaussian noise claims a whole trade-off curve (METHODS 1.5).
"""

from collections.abc import Callable
from math import erfc, exp, inf, lgamma, log, log1p, sqrt
from statistics import NormalDist

from ldp_client.mechanisms import Privacy

OUTWARDS = 1e-9
# Halvings of [0, 1]: 2⁻⁶⁰ is far below any share that samples can bound.
HALVINGS = 60
SMALLEST = 1e-300


def lower_share(successes: int, trials: int, false_alarm: float) -> float:
    """Return a lower bound: the largest probability that `successes` or more would refute at this rate."""
    if successes == 0:
        return 0.0
    share = _root(lambda p: beta_tail(p, successes, trials - successes + 1), false_alarm)
    return share * (1 - OUTWARDS)


def upper_share(successes: int, trials: int, false_alarm: float) -> float:
    """Return an upper bound: the least probability that `successes` or fewer would refute at this rate."""
    return 1 - lower_share(trials - successes, trials, false_alarm) if successes < trials else 1.0


def _root(rising: Callable[[float], float], target: float) -> float:
    """Return, rounded down, where a function that rises on [0, 1] reaches the target."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if rising(middle) < target:
            low = middle
        else:
            high = middle
    return low


def beta_tail(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) = P(Binomial(a + b − 1, x) ≥ a)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(x, a, b) / a
    return 1 - front * _continued_fraction(1 - x, b, a) / b


def _continued_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of I_x(a, b) by Lentz's method (DLMF 8.17.22)."""
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d
    for step in range(1, 100_000):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        change = 1.0
        for term in (even, odd):
            d = 1 / _nonzero(1 + term * d)
            c = _nonzero(1 + term / c)
            value *= c * d
            change = c * d
        if abs(change - 1) < 1e-15:
            break
    return value


def _nonzero(value: float) -> float:
    return value if abs(value) > SMALLEST else SMALLEST


def normal_cdf(x: float) -> float:
    """Return Φ(x), accurate in both tails."""
    return erfc(-x / sqrt(2)) / 2


STEPS = 200


def delta_of(mu: float, epsilon: float) -> float:
    """Return δ of Gaussian noise at distance mu: Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle & Wang 2018)."""
    if mu <= 0:
        return 0.0
    return normal_cdf(mu / 2 - epsilon / mu) - exp(epsilon) * normal_cdf(-mu / 2 - epsilon / mu)


def largest_distance(epsilon: float, delta: float) -> float:
    """Return the largest μ whose δ at ε is at most delta."""
    return _last(lambda mu: delta_of(mu, epsilon) <= delta, 0.0, 64.0)


def epsilon_of(mu: float, delta: float) -> float:
    """Return the ε that noise at distance mu gives with that delta."""
    return _last(lambda epsilon: delta_of(mu, epsilon) > delta, 0.0, 600.0)


def _last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the end of the part of [low, high] on which `holds` is true."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


_NORMAL = NormalDist()


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
