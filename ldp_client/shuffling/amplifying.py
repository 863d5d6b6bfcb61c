"""ε for a δ, and δ for an ε, of one report in a visible set of n reports: never below the true values."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import erfc, exp, log, pi, sqrt

from ldp_client.core.integers import exp_bounds
from ldp_client.documents.errors import InputError
from ldp_client.shuffling.law import Law
from ldp_client.shuffling.slots import expected_excess

MOST_PEOPLE = 10**12
# The sum stops at this many people: a bound for fewer people also holds for more.
_ADDED_UP = 10**8
MOST_EPSILON = 300
# ε is a multiple of 2**-20.
GRID_BITS = 20
EXP_BITS = 128
_LEAST_DELTA = Fraction(1, 10**15)
# If a report that every person may send is in the set with at most this probability, the bound of a report
# alone is within that fraction of the best bound.
_HARDLY_EVER = 2.0**-20


def delta_of(law: Law, people: int, epsilon: Fraction) -> Fraction:
    """Return the δ for an ε.

    Args:
        law: the law of a report.
        people: n, the number of reports in the set.
        epsilon: nats, at least 0.

    Returns:
        A δ, at most 1, so that the set is (ε, δ)-private in one person's answers.

    Raises:
        InputError: people or epsilon is out of range.
    """
    check_people(people)
    if not 0 <= epsilon <= MOST_EPSILON:
        raise InputError.say("set.towards", most=MOST_EPSILON)
    scaled = epsilon * (1 << EXP_BITS)
    return _delta_at(law, people, scaled.numerator // scaled.denominator)


def epsilon_of(law: Law, people: int, delta: Fraction) -> Fraction:
    """Return the ε for a δ.

    Args:
        law: the law of a report.
        people: n, the number of reports in the set.
        delta: a probability, at least 1e-15.

    Returns:
        A multiple of 2**-20: an ε so that the set is (ε, δ)-private in one person's answers.

    Raises:
        InputError: people or delta is out of range.
    """
    check_people(people)
    if not _LEAST_DELTA <= delta < 1:
        raise InputError.say("set.delta")
    step = EXP_BITS - GRID_BITS

    def delta_at(place: int) -> Fraction:
        return _delta_at(law, people, place << step)

    top = int(_log(law.growth) * (1 << GRID_BITS)) + 2
    guess = int(_roughly(law, people, float(delta)) * (1 << GRID_BITS))
    return Fraction(_first(delta_at, delta, min(guess, top - 1), top), 1 << GRID_BITS)


def check_people(people: int) -> None:
    """Reject an invalid number of people.

    Args:
        people: how many.

    Raises:
        InputError: it is below 1 or above 10**12.
    """
    if not 1 <= people <= MOST_PEOPLE:
        raise InputError.say("set.people", most=f"{MOST_PEOPLE:,}")


def _delta_at(law: Law, people: int, scaled: int) -> Fraction:
    ratio = Fraction(exp_bounds(scaled, EXP_BITS)[0], 1 << EXP_BITS)
    if ratio >= law.growth:
        return Fraction(0)
    alone = law.alone(ratio)
    if people * law.covered <= _HARDLY_EVER:
        return alone
    return min(alone, Fraction(*expected_excess(law.atoms(ratio), min(people, _ADDED_UP))))


def _roughly(law: Law, people: int, delta: float) -> float:
    """Return ε as if the sum were normal: the first guess of the search."""
    apart = [_log(mass) + 2 * _log(abs(one - other)) for one, other, mass in law.kinds if one != other]
    widest = max(apart, default=0.0)
    scaled = sum(exp(square - widest) for square in apart) / people
    if widest > MOST_EPSILON:
        # exp(widest) would overflow.
        return widest / 2 + log(scaled) / 2
    spread = sqrt(scaled * exp(widest))
    low, high = 0.0, 40.0
    for _ in range(60):
        z = (low + high) / 2
        excess = spread * (exp(-z * z / 2) / sqrt(2 * pi) - z * erfc(z / sqrt(2)) / 2)
        low, high = (z, high) if excess > delta else (low, z)
    return log(1 + high * spread)


def _first(delta_at: Callable[[int], Fraction], delta: Fraction, guess: int, top: int) -> int:
    """Return the first place up to `top` whose δ is small enough. The δ of `top` is 0."""
    goal = _depth(delta)
    low, high = -1, top
    depths: dict[int, float] = {}
    at, stride, turn = max(guess, 0), 1, 0
    while high - low > 1:
        turn += 1
        at = min(max(at, low + 1), high - 1)
        found = delta_at(at)
        depths[at] = _depth(found)
        low, high = (low, at) if found <= delta else (at, high)
        if turn % 4 == 0 and high < top:
            at = (low + high) // 2
            continue
        if low in depths and high in depths and depths[low] < depths[high]:
            # √(−ln δ) is nearly a straight line.
            part = (goal - depths[low]) / (depths[high] - depths[low])
            at = low + int(part * (high - low)) + (high == at)
            continue
        stride = max(8 * stride, at >> 8)
        at = at - stride if high == at else at + stride
    return high


def _log(number: Fraction) -> float:
    """Return the logarithm, also of numbers beyond the range of floats."""
    return log(number.numerator) - log(number.denominator)


def _depth(delta: Fraction) -> float:
    return sqrt(-log(max(float(delta), 1e-300)))
