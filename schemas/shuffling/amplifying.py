"""ε for a δ, and δ for an ε, of one report in a visible set of n reports: never below the true values."""

from fractions import Fraction
from math import floor, log

from ldp_client.core.integers import exp_bounds
from ldp_client.documents.errors import InputError
from schemas.shuffling.lattice import expected_excess
from schemas.shuffling.laws import Law

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
        raise InputError(f"the epsilon towards the set must be from 0 to {MOST_EPSILON}", code="set.towards")
    return _delta_at(law, people, floor(epsilon * (1 << EXP_BITS)))


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
        raise InputError("delta must be at least 1e-15 and below 1", code="set.delta")
    step = EXP_BITS - GRID_BITS

    # The bound on δ may grow by rounding, but `high` is a place that was tried, or the top, whose δ is 0.
    low, high = -1, int(_log(law.growth) * (1 << GRID_BITS)) + 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _delta_at(law, people, middle << step) <= delta else (middle, high)
    return Fraction(high, 1 << GRID_BITS)


def check_people(people: int) -> None:
    """Reject an invalid number of people.

    Args:
        people: how many.

    Raises:
        InputError: it is below 1 or above 10**12.
    """
    if not 1 <= people <= MOST_PEOPLE:
        raise InputError(f"people must be from 1 to {MOST_PEOPLE:,}", code="set.people")


def _delta_at(law: Law, people: int, scaled: int) -> Fraction:
    ratio = Fraction(exp_bounds(scaled, EXP_BITS)[0], 1 << EXP_BITS)
    if ratio >= law.growth:
        return Fraction(0)
    alone = law.alone(ratio)
    if people * law.covered <= _HARDLY_EVER:
        return alone
    return min(alone, expected_excess(law.atoms(ratio), min(people, _ADDED_UP)))


def _log(number: Fraction) -> float:
    """Return the logarithm, also of numbers beyond the range of floats."""
    return log(number.numerator) - log(number.denominator)
