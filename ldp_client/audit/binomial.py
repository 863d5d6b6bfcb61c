"""Confidence bounds of a share (Clopper & Pearson 1934), and the normal distribution, in floats.

Tails are accurate to about 1e-12; bounds are moved outwards by 1e-9 of themselves to cover it.
"""

from math import erfc, exp, lgamma, log, log1p, sqrt

OUTWARDS = 1e-9
STEPS = 60
SMALLEST = 1e-300


def lower_share(successes: int, trials: int, false_alarm: float) -> float:
    """The largest probability that `successes` or more would refute at this rate: a bound from below."""
    if successes == 0:
        return 0.0
    share = _root(lambda p: beta_tail(p, successes, trials - successes + 1), false_alarm)
    return share * (1 - OUTWARDS)


def upper_share(successes: int, trials: int, false_alarm: float) -> float:
    """The same from above, for `successes` or fewer."""
    return 1 - lower_share(trials - successes, trials, false_alarm) if successes < trials else 1.0


def _root(rising: "Callable[[float], float]", target: float) -> float:
    """Where a function that rises on [0, 1] reaches the target, from below."""
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if rising(middle) < target:
            low = middle
        else:
            high = middle
    return low


def beta_tail(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b) = P(Binomial(a + b − 1, x) ≥ a)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _continued_fraction(x, a, b) / a
    return 1 - front * _continued_fraction(1 - x, b, a) / b


def _continued_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of I_x(a, b) by Lentz's method (DLMF 8.17.22)."""
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
    """Φ(x), accurate in both tails."""
    return erfc(-x / sqrt(2)) / 2


TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
