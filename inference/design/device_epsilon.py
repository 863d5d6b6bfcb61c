"""Finds the device's epsilons that give a wished epsilon towards an observer of the set of reports only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal
from typing import Any

from inference.design.budgets import with_epsilons
from ldp_client import mechanisms_of
from ldp_client.documents.errors import InputError, StudyError
from schemas import Study
from schemas.shuffling.amplifying import delta_of
from schemas.shuffling.laws import law_of_report
from schemas.shuffling.reports import (
    DEFAULT_DELTA,
    ShuffledPrivacy,
    device_epsilon,
    exact,
    rounded_up,
    shuffled_privacy,
)

# The total is searched in these steps, up to the default budget of a device for a study. Above it the
# device's own noise, which is the only protection towards most observers, hides hardly anything.
STEP = Decimal("0.01")
MOST = Decimal(8)
# The step of a question's part.
FINE = Decimal("0.0001")


@dataclass(frozen=True)
class DeviceEpsilon:
    """The largest device's epsilon that keeps to a wished epsilon towards the set.

    Attributes:
        wished: the wished ε towards the set.
        epsilons: {question: decimal}, in the proportions of the study's.
        found: the privacy of the set with these epsilons.
        is_most: whether the device's own limit, 8 in all, ended the search.
        document: the study with these epsilons.
    """

    wished: float
    epsilons: Mapping[str, str]
    found: ShuffledPrivacy
    is_most: bool
    document: Mapping[str, Any]


def plan_shuffled(
    study: Study,
    wished: str | float,
    people: int,
    *,
    delta: str | float = DEFAULT_DELTA,
) -> DeviceEpsilon:
    """Choose a study's epsilons by what the set of all reports may tell about one person.

    Args:
        study: whose epsilons are kept in proportion.
        wished: the ε towards an observer who sees only the set.
        people: how many will send a report.
        delta: the δ that goes with it.

    Returns:
        The largest epsilons, 8 in all at most, that keep to it.

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
    scaled = _scaled(study, STEP * low)
    epsilons = {one["id"]: one["mechanism"]["epsilon"] for one in scaled.document["questions"]}
    found = shuffled_privacy(scaled, people, delta=delta)
    # The epsilon that `shuffled_privacy` finds is on a grid; the wish was checked exactly.
    found = replace(found, epsilon=min(found.epsilon, rounded_up(goal)))
    return DeviceEpsilon(float(goal), epsilons, found, STEP * low == MOST, scaled.document)


def _scaled(study: Study, total: Decimal) -> Study:
    """Return the study with its epsilons scaled, so that a device spends this total. Raises InputError."""
    stated = {one.id: Decimal(str(one.mechanism.epsilon)) for one in study.questions}
    factor = total / Decimal(str(study.epsilon))
    wanted = {name: (factor * one).quantize(FINE, ROUND_DOWN) for name, one in stated.items()}
    try:
        scaled = Study(with_epsilons(study, {name: f"{one:f}" for name, one in wanted.items()}))
        mechanisms_of(scaled)
    except StudyError as error:
        raise InputError(f"at epsilon {total} in all: {error}", code="plan.epsilon_invalid") from None
    return scaled
