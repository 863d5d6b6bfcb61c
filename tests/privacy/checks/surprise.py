"""How surprising a count or a sum is under a known law. Rare reports are not normal, and not taken to be.

A score s is in standard errors: a sound mechanism's is above s with probability at most exp(−s²/2), on either
side and for any number of reports (Chernoff 1952); where counts are large it is the plain number of them.
"""

from collections.abc import Callable, Sequence
from math import exp, expm1, inf, log, log1p, sqrt

# Up to here the plain score is given: a sharper one would stay below every limit.
PLAIN = 4.0
# exp of it times the likeliest product is more than any count here can say.
FARTHEST = 100.0
SEARCH = 60
# A share so near to a half is one.
NEAR = 1e-6


class Column:
    """What noise did to one number of each report, minus its mean.

    share: of values that are 0 or 1 before their mean is taken off, the probability of a 1; None for numbers,
    whose law is symmetric about 0. shares: the same, where each value has its own.
    """

    def __init__(
        self,
        values: Sequence[float],
        share: float | None = None,
        shares: Sequence[float] | None = None,
    ) -> None:
        self.values = values
        self.share = share
        self.shares = shares

    @property
    def symmetric(self) -> bool:
        return self.share is None and self.shares is None


def count_score(seen: float, trials: float, share: float) -> float:
    """Of how often an event of that probability came."""
    rate = seen / trials
    exponent = 0.0
    for found, stated in ((rate, share), (1 - rate, 1 - share)):
        if found > 0:
            exponent += found * log(found / stated) if stated > 0 else inf
    return sqrt(max(2 * trials * exponent, 0.0))


def most_of(expected: float, false_alarm: float) -> int:
    """The count that rare events, so many of which belong, exceed with at most that probability (Poisson)."""
    count = int(expected)
    while count + 1 <= expected or _poisson_exponent(count + 1, expected) < -log(false_alarm):
        count += 1
    return count


def _poisson_exponent(count: int, expected: float) -> float:
    return count * log(count / expected) - count + expected if expected > 0 else inf


def pair_score(one: Column, other: Column, lag: int = 0) -> float:
    """Of the sum of two questions' products, the second one's `lag` reports behind."""
    firsts, seconds = one.values[lag:], other.values[: len(other.values) - lag]
    total = sum([a * b for a, b in zip(firsts, seconds)])
    if not (one.symmetric or other.symmetric) and (one.shares or other.shares):
        if one.shares:
            return _bounded_score(total, one.shares[lag:], seconds)
        assert other.shares is not None
        return _bounded_score(total, other.shares, firsts)
    if one.share is None or other.share is None:
        # One factor is symmetric, so the sum over its own size is as safe as a normal (Efron 1969).
        power = sqrt(sum([(a * b) ** 2 for a, b in zip(firsts, seconds)]))
        return abs(total) / power if power else inf
    cells = [
        (chance * likely, value * factor)
        for chance, value in _two(one.share)
        for likely, factor in _two(other.share)
    ]
    spread = sqrt(sum([chance * value**2 for chance, value in cells]))
    most = max([abs(value) for _, value in cells])

    def growth(t: float) -> float:
        # All products' mean is 0, which is taken off each term so that small ones keep their digits.
        return log1p(sum([chance * (expm1(t * value) - t * value) for chance, value in cells]))

    return _score(total, len(firsts), spread, most, growth)


def _bounded_score(total: float, shares: Sequence[float], factors: Sequence[float]) -> float:
    """Of a sum of centred 0 or 1 with these shares, times factors of which they are independent.

    Each is no wilder than a normal of this variance (Kearns & Saul 1998).
    """
    variance = 0.0
    for share, factor in zip(shares, factors):
        tilt = 1 - 2 * share
        part = tilt / (2 * log((1 - share) / share)) if abs(tilt) > NEAR else 0.25
        variance += part * factor * factor
    return abs(total) / sqrt(variance) if variance else 0.0


def lag_score(column: Column, lag: int) -> float:
    """Of the sum of products of a column of 0 and 1 with itself, so many reports later."""
    total = sum([a * b for a, b in zip(column.values, column.values[lag:])])
    share = column.share
    assert share is not None
    (never, low), (ever, high) = _two(share)

    def growth(t: float) -> float:
        # Successive products share a report: they grow by the chain's largest eigenvalue.
        first, last = never * exp(t * low * low), ever * exp(t * high * high)
        between = sqrt(never * ever) * exp(t * low * high)
        return log((first + last) / 2 + sqrt(((first - last) / 2) ** 2 + between**2))

    most = max(low * low, high * high)
    return _score(total, len(column.values) - lag, never * ever, most, growth)


def _two(share: float) -> tuple[tuple[float, float], tuple[float, float]]:
    """The two values of a centred 0 or 1, each behind its probability."""
    return (1 - share, -share), (share, 1 - share)


def _score(total: float, n: int, spread: float, most: float, growth: Callable[[float], float]) -> float:
    """Of a sum of n terms of mean 0, the logarithm of whose exponential moments is at most n × growth."""
    if abs(total) <= PLAIN * spread * sqrt(n):
        return abs(total) / (spread * sqrt(n)) if total else 0.0
    sign = 1 if total > 0 else -1

    def exponent(t: float) -> float:
        return t * abs(total) - n * growth(sign * t)

    # It is concave: by thirds.
    low, high = 0.0, FARTHEST / most
    for _ in range(SEARCH):
        one, other = low + (high - low) / 3, high - (high - low) / 3
        low, high = (one, high) if exponent(one) < exponent(other) else (low, other)
    return sqrt(max(2 * exponent(low), 0.0))
