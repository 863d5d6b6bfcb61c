"""What (ε, δ) means for Gaussian noise: the radius μ it allows, in standard deviations (METHODS 1.5)."""

from math import exp

from ldp_client.audit.binomial import normal_cdf

STEPS = 200


def delta_of(mu: float, epsilon: float) -> float:
    """δ of Gaussian noise at distance mu: Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Balle & Wang 2018)."""
    if mu <= 0:
        return 0.0
    return normal_cdf(mu / 2 - epsilon / mu) - exp(epsilon) * normal_cdf(-mu / 2 - epsilon / mu)


def largest_distance(epsilon: float, delta: float) -> float:
    """The largest μ whose δ at ε is at most delta."""
    return _last(lambda mu: delta_of(mu, epsilon) <= delta, 0.0, 64.0)


def epsilon_of(mu: float, delta: float) -> float:
    """The ε that noise at distance mu gives with that delta."""
    return _last(lambda epsilon: delta_of(mu, epsilon) > delta, 0.0, 600.0)


def _last(holds: "Callable[[float], bool]", low: float, high: float) -> float:
    """The end of the part of [low, high] on which it holds."""
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
