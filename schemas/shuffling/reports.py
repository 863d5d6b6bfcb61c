"""The privacy of a study's report towards an observer who sees only the set of all reports."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter

from ldp_client.documents.errors import InputError
from ldp_client.documents.rational import Rational
from ldp_client.documents.study import Study
from ldp_client.mechanisms import mechanisms_of
from ldp_client.words.text import rounded_up as in_digits
from schemas.shuffling.amplifying import check_people, delta_of, epsilon_of
from schemas.shuffling.laws import Law, any_law, exp_above, law_of_report

DEFAULT_DELTA = "1e-6"
# The largest ε of a device for the general bound.
MOST_EPSILON = 64
# Digits for people; programs get all digits.
SHOWN_DIGITS = 4


@dataclass(frozen=True)
class ShuffledPrivacy:
    """The privacy of a device's report towards an observer who sees only the set of reports.

    It does not hold towards an observer who sees reports arrive, or towards relay and collector together.
    Towards them the device's own ε remains the guarantee.

    Attributes:
        epsilon: nats, rounded up.
        delta: the δ for this ε, a probability.
        device_epsilon: the ε of the device's noise alone, towards everyone, rounded up.
        people: how many people send a report.
        false_reports: how many of these reports are assumed false. False reports hide no one.
        cells: how many combinations of public values there are. A report hides among reports in its cell.
        hidden_among: how many true reports there are in the set, including the person's own.
        is_even_spread: whether hidden_among assumes an even spread over the cells, because the size of the
            smallest cell was not given.
    """

    epsilon: float
    delta: float
    device_epsilon: float
    people: int
    false_reports: int
    cells: int
    hidden_among: int
    is_even_spread: bool


def shuffled_privacy(
    study: Study,
    people: int,
    *,
    delta: str | float = DEFAULT_DELTA,
    contamination: str | float = 0,
    smallest_cell: int | None = None,
) -> ShuffledPrivacy:
    """Bound what the set of a study's reports reveals about one person (METHODS 1.6).

    Args:
        study: a study that asks people, whose mechanisms have pure ε.
        people: how many people send a report.
        delta: the δ for the ε, from 1e-15 to below 1.
        contamination: how many reports are false: a share below 1, or a number from 1 on. They are subtracted
            from the person's own cell, the worst case.
        smallest_cell: how many people share the rarest combination of public values (default: people spread
            evenly over all combinations).

    Returns:
        The ε, and the assumptions behind it.

    Raises:
        InputError: an argument is out of range; the study has a secure sum, is for data holders, or has a
            question whose noise has a δ.
    """
    check_people(people)
    exact_delta = exact(delta, "delta")
    false = _false_of(people, exact(contamination, "contamination"))
    if smallest_cell is not None and not 1 <= smallest_cell <= people:
        raise InputError("smallest_cell must be from 1 to the number of people", code="set.smallest_cell")
    cell = people // study.cells if smallest_cell is None else smallest_cell
    among = max(1, cell - false)
    own = device_epsilon(study)
    found = min(rounded_up(epsilon_of(law_of_report(study), among, exact_delta)), own)
    is_even = study.cells > 1 and smallest_cell is None
    return ShuffledPrivacy(found, float(exact_delta), own, people, false, study.cells, among, is_even)


def device_epsilon(study: Study) -> float:
    """Return the ε of everything that a device sends by its own noise, from the integers, rounded up."""
    built = mechanisms_of(study)
    costs = {name: Fraction(*_parts(mechanism.privacy.epsilon)) for name, mechanism in built.items()}
    once = [costs[question.id] for question in study.questions if not question.repeats]
    always = [costs[question.id] for question in study.questions if question.repeats]
    # Add up as `Study.epsilon` does for the stated ε.
    return rounded_up(
        sum(always, Fraction(0)) + (max(once, default=0) if study.sample_one_question else sum(once))
    )


def _parts(number: Rational) -> tuple[int, int]:
    return number.numerator, number.denominator


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
    own = exact(epsilon, "epsilon")
    return min(
        rounded_up(epsilon_of(_law_of_any(own), people, exact(delta, "delta"))),
        rounded_up(own),
    )


def shuffled_delta(epsilon: str | float, people: int, towards: str | float) -> float:
    """Bound δ towards the set of reports for any mechanism of pure ε (METHODS 1.6).

    Args:
        epsilon: the ε of the device's noise alone, in nats, above 0.
        people: how many true reports are in the set.
        towards: the ε towards the set for which to bound δ.

    Returns:
        The δ, rounded up.

    Raises:
        InputError: an argument is out of range.
    """
    law = _law_of_any(exact(epsilon, "epsilon"))
    return rounded_up(delta_of(law, people, exact(towards, "towards")))


def _law_of_any(epsilon: Fraction) -> Law:
    if not 0 < epsilon <= MOST_EPSILON:
        raise InputError(f"epsilon must be above 0, and at most {MOST_EPSILON}", code="set.epsilon")
    return any_law(exp_above(Rational(epsilon.numerator, epsilon.denominator)))


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
        found = Rational.parse(str(number))
    except ValueError:
        raise InputError(f"{name} must be a decimal, such as 0.01 or 1e-6", code="set.decimal") from None
    return Fraction(found.numerator, found.denominator)


def _false_of(people: int, stated: Fraction) -> int:
    """Return how many reports are false, from a share of all, rounded up, or a number. Raises InputError."""
    if stated < 0 or (stated >= 1 and stated.denominator != 1) or stated >= people:
        raise InputError(
            "false reports must be a share, such as 0.01, or a whole number below the number of people",
            code="set.contamination",
        )
    return int(stated) if stated >= 1 else -(-people * stated.numerator // stated.denominator)


def rounded_up(number: Fraction) -> float:
    """Return the least float that is not below the number.

    Args:
        number: a fraction.

    Returns:
        The float.
    """
    found = float(number)
    return found if Fraction(found) >= number else nextafter(found, inf)


def lines_of(study: Study, found: ShuffledPrivacy) -> list[str]:
    """Return the bound in words, with the observers for whom it holds and does not hold."""
    among, left_out = f"{found.hidden_among:,}", ""
    if found.false_reports:
        left_out = f" ({found.false_reports:,} of {found.people:,} left out as false)"
    epsilon, delta = in_digits(found.epsilon, SHOWN_DIGITS), in_digits(found.delta, SHOWN_DIGITS)
    lines = [
        "towards an observer of only the set of reports, in no order: "
        f"epsilon {epsilon}, delta {delta}, among {among} true reports{left_out}"
    ]
    if found.cells > 1:
        how = "of the combination that the fewest people share"
        if found.is_even_spread:
            how = f"if people spread evenly over all {found.cells:,} combinations; pass --smallest-cell for "
            how += "the size of the rarest combination"
        lines.append(
            f"That is the set of reports with a person's own public values: {among} true reports, {how}."
        )
    own = in_digits(found.device_epsilon, SHOWN_DIGITS)
    lines.append(
        "This bound does not hold towards an observer who sees reports arrive, nor towards relay and "
        f"collector together. Towards them, and for certain towards everyone, the device's own epsilon {own} "
        "holds."
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
