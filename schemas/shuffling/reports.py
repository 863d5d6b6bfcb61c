"""The privacy of a study's report towards an observer who sees only the set of all reports."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter

from ldp_client.documents.errors import InputError
from ldp_client.documents.rational import Rational
from ldp_client.documents.study import Study
from ldp_client.mechanisms import mechanisms_of
from ldp_client.words.text import rounded_up as in_digits
from schemas.shuffling.amplifying import check_people, epsilon_of
from schemas.shuffling.laws import any_law, exp_above, law_of_report

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
    exact_delta = exact(delta, "delta")
    among = max(1, people // study.cells)
    alone = device_epsilon(study)
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
