"""The privacy of a study's report towards an observer who sees only the set of all reports."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, log, nextafter

from ldp_client.core.integers import exp_bounds
from ldp_client.documents.errors import InputError
from ldp_client.documents.rational import Rational
from ldp_client.documents.study import Study
from ldp_client.mechanisms import mechanisms_of
from ldp_client.words.text import rounded_up as in_digits
from schemas.shuffling.lattice import expected_excess
from schemas.shuffling.laws import EXP_BITS, Law, any_law, exp_above, law_of_report

DEFAULT_DELTA = "1e-6"
# The largest ε of a device for the general bound.
MOST_EPSILON = 64
# Digits for people; programs get all digits.
SHOWN_DIGITS = 4
MOST_PEOPLE = 10**12
# The sum stops at this many people: a bound for fewer people also holds for more.
_ADDED_UP = 10**8
# ε is a multiple of 2**-20.
GRID_BITS = 20
_LEAST_DELTA = Fraction(1, 10**15)
# If a report that every person may send is in the set with at most this probability, the bound of a report
# alone is within that fraction of the best bound.
_HARDLY_EVER = 2.0**-20


def epsilon_of(law: Law, people: int, delta: Fraction) -> Fraction:
    """Return the ε for a δ of one report in a visible set of n reports: never below the true value.

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
    # The bound on δ may grow by rounding, but `high` is a place that was tried, or the top, whose δ is 0.
    top = log(law.growth.numerator) - log(law.growth.denominator)
    low, high = -1, int(top * (1 << GRID_BITS)) + 2
    while high - low > 1:
        middle = (low + high) // 2
        scaled = middle << (EXP_BITS - GRID_BITS)
        low, high = (low, middle) if _delta_at(law, people, scaled) <= delta else (middle, high)
    return Fraction(high, 1 << GRID_BITS)


def check_people(people: int) -> None:
    """Raise InputError for a number of people that is out of range."""
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


@dataclass(frozen=True)
class ShuffledPrivacy:
    """The privacy of a device's report towards an observer who sees only the set of reports.

    It does not hold towards an observer who sees reports arrive, or towards relay and collector together.
    Towards them the device's own ε remains the guarantee.

    Attributes:
        epsilon: nats, rounded up.
        delta: the δ for this ε, a probability.
        device_epsilon: the ε of the device's noise alone, towards everyone, rounded up.
        people: how many people send a true report.
        cells: how many combinations of public values there are. A report hides among reports in its cell.
        hidden_among: how many reports there are in each cell, if people spread evenly over the cells.
    """

    epsilon: float
    delta: float
    device_epsilon: float
    people: int
    cells: int
    hidden_among: int


def shuffled_privacy(study: Study, people: int, *, delta: str | float = DEFAULT_DELTA) -> ShuffledPrivacy:
    """Bound what the set of a study's reports reveals about one person (METHODS 1.6).

    Args:
        study: a study that asks people, whose mechanisms have pure ε.
        people: how many people send a true report: false reports hide no one. They spread evenly over all
            combinations of public values.
        delta: the δ for the ε, from 1e-15 to below 1.

    Returns:
        The ε, and the assumptions behind it.

    Raises:
        InputError: an argument is out of range; the study has a secure sum, is for data holders, or has a
            question whose noise has a δ.
    """
    check_people(people)
    exact_delta, alone = exact(delta, "delta"), device_epsilon(study)
    # A cell that expects fewer people than one has one.
    among = max(people // study.cells, 1)
    epsilon = min(rounded_up(epsilon_of(law_of_report(study), among, exact_delta)), alone)
    return ShuffledPrivacy(epsilon, float(exact_delta), alone, people, study.cells, among)


def device_epsilon(study: Study) -> float:
    """Return the ε of everything that a device sends by its own noise, from the integers, rounded up."""
    costs = [mechanism.privacy.epsilon for mechanism in mechanisms_of(study).values()]
    return rounded_up(study.total_of(costs))


def shuffled_epsilon(epsilon: str | float, people: int, delta: str | float = DEFAULT_DELTA) -> float:
    """Bound ε towards the set of reports for any mechanism of pure ε (METHODS 1.6).

    Args:
        epsilon: the ε of the device's noise alone, in nats, above 0.
        people: how many true reports are in the set.
        delta: the δ for the result.

    Returns:
        The ε towards an observer who sees only the set, rounded up; never above `epsilon`.

    Raises:
        InputError: an argument is out of range.
    """
    alone = exact(epsilon, "epsilon")
    if not 0 < alone <= MOST_EPSILON:
        raise InputError(f"epsilon must be above 0, and at most {MOST_EPSILON}", code="set.epsilon")
    law = any_law(exp_above(alone))
    return min(rounded_up(epsilon_of(law, people, exact(delta, "delta"))), rounded_up(alone))


def exact(number: str | float, name: str) -> Fraction:
    """Return a number exactly as it is written.

    Args:
        number: a decimal; a float means its shortest decimal.
        name: the argument's name, for the error.

    Returns:
        The number.

    Raises:
        InputError: `number` is not a decimal number.
    """
    try:
        return Rational.parse(str(number))
    except ValueError:
        raise InputError(f"{name} must be a decimal, such as 0.01 or 1e-6", code="set.decimal") from None


def rounded_up(number: Fraction) -> float:
    """Return the least float that is not below the number.

    Args:
        number: a fraction.

    Returns:
        The float.
    """
    found = float(number)
    return found if Fraction(found) >= number else nextafter(found, inf)


def lines_of(study: Study, privacy: ShuffledPrivacy) -> list[str]:
    """Return the bound in words, with the observers for whom it holds and does not hold."""
    among = f"{privacy.hidden_among:,}"
    epsilon, delta = in_digits(privacy.epsilon, SHOWN_DIGITS), in_digits(privacy.delta, SHOWN_DIGITS)
    lines = [
        "towards an observer of only the set of reports, in no order: "
        f"epsilon {epsilon}, delta {delta}, among {among} true reports"
    ]
    if privacy.cells > 1:
        lines.append(
            f"That is the set of reports with a person's own public values: {among} true reports, if people "
            f"spread evenly over all {privacy.cells:,} combinations."
        )
    alone = in_digits(privacy.device_epsilon, SHOWN_DIGITS)
    lines.append(
        "This bound does not hold towards an observer who sees reports arrive, nor towards relay and "
        "collector together. Towards them, and for certain towards everyone, the device's own epsilon "
        f"{alone} holds."
    )
    if study.channel is None:
        return [
            *lines,
            "The study has no channel with batches, so its collector sees reports arrive. "
            "This bound does not hold towards it.",
        ]
    tickets = "" if study.channel.tickets else " and without tickets"
    return [
        *lines,
        f"Towards the collector alone, this bound holds for a batch of {study.channel.hours} hours "
        f"if that many true reports leave in it, all through an independent relay (`Oblivious`){tickets}.",
    ]
