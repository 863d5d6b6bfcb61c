"""Finds the device's epsilons that give a wished epsilon towards an observer of the set of reports only."""

from __future__ import annotations

from decimal import ROUND_DOWN, Decimal

from inference.design.budgets import with_epsilons
from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, StudyError
from schemas import Study
from schemas.shuffling.amplifying import delta_of
from schemas.shuffling.laws import law_of_report
from schemas.shuffling.reports import DEFAULT_DELTA, device_epsilon, exact, shuffled_privacy

# The total is searched in these steps, up to the default budget of a device for a study. Above it the
# device's own noise, which is the only protection towards most observers, hides hardly anything.
STEP = Decimal("0.01")
MOST = Decimal(8)
# The step of a question's part.
FINE = Decimal("0.0001")


def plan_shuffled(
    study: Study,
    wished: str | float,
    people: int,
    *,
    delta: str | float = DEFAULT_DELTA,
) -> Study:
    """Choose a study's epsilons by what the set of all reports may tell about one person.

    Args:
        study: whose epsilons are kept in proportion.
        wished: the ε towards an observer who sees only the set.
        people: how many will send a report.
        delta: the δ that goes with it.

    Returns:
        The study with the largest epsilons, 8 in all at most, that keep to it.

    Raises:
        InputError: an argument is out of range, no epsilon is small enough, or the set has no bound for this
            study.
    """
    goal, exact_delta = exact(wished, "shuffled_epsilon"), exact(delta, "delta")
    if goal <= 0:
        raise InputError("the epsilon towards the set must be above 0", code="plan.set_epsilon_not_positive")
    among = shuffled_privacy(study, people, delta=delta).hidden_among

    def keeps_to(place: int) -> bool:
        scaled = _scaled(study, STEP * place)
        own = device_epsilon(scaled)
        return own <= goal or delta_of(law_of_report(scaled), among, goal) <= exact_delta

    low, high = 0, int(MOST / STEP) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps_to(middle) else (low, middle)
    if low == 0:
        raise InputError(
            f"no device's epsilon of {STEP} or more keeps to {float(goal):g} towards the set",
            code="plan.set_epsilon_not_reached",
        )
    return _scaled(study, STEP * low)


def _scaled(study: Study, total: Decimal) -> Study:
    """Return the study with its epsilons scaled, so that a device spends this total. Raises InputError."""
    factor = total / Decimal(str(study.epsilon))
    parts = {one.id: factor * Decimal(str(one.mechanism.epsilon)) for one in study.questions}
    try:
        scaled = Study(
            with_epsilons(
                study, {name: f"{part.quantize(FINE, ROUND_DOWN):f}" for name, part in parts.items()}
            )
        )
        mechanisms_of(scaled)
    except StudyError as error:
        raise InputError(f"at epsilon {total} in all: {error}", code="plan.epsilon_invalid") from None
    return scaled
