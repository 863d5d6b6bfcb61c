"""A study's report towards somebody who sees only the set of all reports."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter

from ldp_client.documents.errors import InputError
from ldp_client.documents.rational import Rational
from ldp_client.documents.study import Study
from ldp_client.mechanisms import mechanisms_of
from ldp_client.shuffling.amplifying import check_people, delta_of, epsilon_of
from ldp_client.shuffling.law import Law, any_law
from ldp_client.shuffling.mechanisms import exp_above, law_of_report

DEFAULT_DELTA = "1e-6"
# Of a device, for the general bound.
MOST_EPSILON = 64


@dataclass(frozen=True)
class TowardsSet:
    """What a device's report is worth towards somebody who sees only the set of reports.

    It holds neither towards somebody who sees reports arrive, nor towards relay and collector together: there
    the device's own ε holds, which stays the guarantee.

    Attributes:
        epsilon: nats, rounded up.
        delta: what it goes with, a probability.
        device_epsilon: what the device's noise gives by itself towards everybody, rounded up.
        people: how many send a report.
        false_reports: how many of these are taken to be false, and hide nobody.
        cells: how many combinations of public values there are; a report hides among those of its own.
        hidden_among: how many true reports there are in the set, the person's own included.
        is_even_spread: whether that number is what an even spread over the cells would give, as nobody said
            how many the smallest one has.
    """

    epsilon: float
    delta: float
    device_epsilon: float
    people: int
    false_reports: int
    cells: int
    hidden_among: int
    is_even_spread: bool


def towards_set(
    study: Study,
    people: int,
    *,
    delta: str | float = DEFAULT_DELTA,
    false_reports: str | float = 0,
    smallest_cell: int | None = None,
) -> TowardsSet:
    """Bound what the set of a study's reports tells about one person (METHODS 1.6).

    Args:
        study: one that is asked of people, whose mechanisms have pure ε.
        people: how many send a report.
        delta: the δ that goes with the ε, from 1e-15 to below 1.
        false_reports: how many reports are false: a share below 1, or a number of them from 1 on. They are
            taken out of the person's own cell, where they do the most harm.
        smallest_cell: how many people share the public values that the fewest have; left out, people are
            taken to spread evenly over all combinations.

    Returns:
        The ε, and of whom it is true.

    Raises:
        InputError: an argument is out of range; the study has a secure sum, is for data holders, or has a
            question whose noise has a δ of its own.
    """
    check_people(people)
    exact_delta = exact(delta, "delta")
    false = _false_of(people, exact(false_reports, "false_reports"))
    if smallest_cell is not None and not 1 <= smallest_cell <= people:
        raise InputError.say("set.smallest_cell")
    cell = people // study.cells if smallest_cell is None else smallest_cell
    among = max(1, cell - false)
    own = device_epsilon(study)
    found = min(rounded_up(epsilon_of(law_of_report(study), among, exact_delta)), own)
    is_even = study.cells > 1 and smallest_cell is None
    return TowardsSet(found, float(exact_delta), own, people, false, study.cells, among, is_even)


def device_epsilon(study: Study) -> float:
    """What all that a device sends costs by its own noise, from the integers, rounded up."""
    built = mechanisms_of(study)
    costs = {name: Fraction(*_parts(mechanism.privacy.epsilon)) for name, mechanism in built.items()}
    once = [costs[question.id] for question in study.questions if not question.repeats]
    always = [costs[question.id] for question in study.questions if question.repeats]
    # As `Study.epsilon` adds up what is stated.
    return rounded_up(sum(always, Fraction(0)) + (max(once, default=0) if study.ask_one else sum(once)))


def _parts(number: Rational) -> tuple[int, int]:
    return number.numerator, number.denominator


def shuffled_epsilon(epsilon: str | float, people: int, delta: str | float = DEFAULT_DELTA) -> float:
    """Bound ε towards the set of reports for any mechanism of pure ε (METHODS 1.6).

    Args:
        epsilon: what the device's noise gives by itself, in nats, above 0.
        people: how many true reports are in the set.
        delta: the δ that goes with the result.

    Returns:
        The ε towards somebody who sees only the set, rounded up; never above `epsilon`.

    Raises:
        InputError: an argument is out of range.
    """
    own = exact(epsilon, "epsilon")
    return min(
        rounded_up(epsilon_of(_law_of_any(own), people, exact(delta, "delta"))),
        rounded_up(own),
    )


def shuffled_delta(epsilon: str | float, people: int, towards: str | float) -> float:
    """Bound δ towards the set of reports for any mechanism of pure ε (METHODS 1.6).

    Args:
        epsilon: what the device's noise gives by itself, in nats, above 0.
        people: how many true reports are in the set.
        towards: the ε towards the set that the δ goes with.

    Returns:
        The δ, rounded up.

    Raises:
        InputError: an argument is out of range.
    """
    law = _law_of_any(exact(epsilon, "epsilon"))
    return rounded_up(delta_of(law, people, exact(towards, "towards")))


def _law_of_any(epsilon: Fraction) -> Law:
    if not 0 < epsilon <= MOST_EPSILON:
        raise InputError.say("set.epsilon", most=MOST_EPSILON)
    return any_law(exp_above(Rational(epsilon.numerator, epsilon.denominator)))


def exact(number: str | float, name: str) -> Fraction:
    """The number as it is written.

    Args:
        number: a decimal; of a float the shortest decimal that it stands for.
        name: of the argument.

    Returns:
        The number.

    Raises:
        InputError: it is none.
    """
    try:
        found = Rational.parse(str(number))
    except ValueError:
        raise InputError.say("set.decimal", name=name) from None
    return Fraction(found.numerator, found.denominator)


def _false_of(people: int, stated: Fraction) -> int:
    """How many reports are false: a share of all, rounded up, or a number. Raises InputError."""
    if stated < 0 or (stated >= 1 and stated.denominator != 1) or stated >= people:
        raise InputError.say("set.false_reports")
    return int(stated) if stated >= 1 else -(-people * stated.numerator // stated.denominator)


def rounded_up(number: Fraction) -> float:
    """The least float that is not below.

    Args:
        number: a fraction.

    Returns:
        The float.
    """
    found = float(number)
    return found if Fraction(found) >= number else nextafter(found, inf)
