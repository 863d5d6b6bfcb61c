"""One total epsilon over the questions of a study: so that the worst relative half width is the smallest.

Relative to the prior's own: 1 is nothing learnt. By the formulas of at_once.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from inference.design.at_once import Vector, half_widths
from inference.design.budgets import with_epsilons
from inference.design.calibration import empty_model
from inference.design.plan import prior_half_widths, truths_of
from inference.models.base import Truth
from ldp_client.documents.errors import InputError, StudyError, UsageError
from schemas import Question, Study

# Budgets that a question is looked at, as shares of the total; between them widths are interpolated.
LOOKED_AT = np.geomspace(0.002, 1.0, 14)
# Epsilons are written with so fine a step, downwards.
STEP = Decimal("0.0001")


@dataclass(frozen=True)
class Split:
    """epsilons: {question: decimal}. half_widths: {question: {parameter: from `devices`}}. relative: of each
    question the worst, over the prior's own. kept: questions that have no formula, and keep what the study
    states. document: the study with these epsilons.
    """

    devices: int
    epsilons: Mapping[str, str]
    half_widths: Mapping[str, Mapping[str, float]]
    relative: Mapping[str, float]
    kept: tuple[str, ...]
    document: Mapping[str, Any]


def split_epsilon(study: Study, total: str, devices: int, seed: int = 0) -> Split:
    """Allot a total to a study's questions.

    Args:
        study: whose questions are all asked of everybody.
        total: the sum of their epsilons, a decimal.
        devices: how many will answer.
        seed: of truths, which are drawn from the prior.

    Returns:
        Epsilons that add up to the total at most, and the widths that they give.

    Raises:
        InputError: a total that is none, or does not suffice; a study that asks each device for one question.
    """
    budget = _decimal(total)
    if study.ask_one:
        raise InputError(
            "each device answers one question and spends its epsilon alone: there is nothing to split",
            code="plan.split_of_one_question",
        )
    asked = {question.id: _Asked.of(study, question, devices, seed) for question in study.questions}
    known = {name: one for name, one in asked.items() if one is not None}
    kept = {one.id: Decimal(str(one.mechanism.epsilon)) for one in study.questions if asked[one.id] is None}
    if not known:
        raise InputError(
            "no question of this study has a formula for its width: simulate plans of each",
            code="plan.split_without_formula",
        )
    left = budget - sum(kept.values())
    if left <= 0:
        raise InputError(
            f"{', '.join(kept)} have no formula and keep their epsilon, {sum(kept.values())} in all: a total "
            f"of {total} leaves nothing for the others",
            code="plan.split_total_spent",
        )
    curves = {name: one.curve(left) for name, one in known.items()}
    found = _allotted(curves, left)
    widths = {name: one.widths(found[name]) or {} for name, one in known.items()}
    relative = {name: known[name].relative(one) for name, one in widths.items()}
    return Split(devices, found, widths, relative, tuple(kept), with_epsilons(study, found))


def _decimal(total: str) -> Decimal:
    try:
        found = Decimal(total)
    except ArithmeticError:
        found = Decimal(0)
    if not found.is_finite() or not found > 0:
        raise UsageError(
            f"--total-epsilon must be a decimal above 0, such as 3, not {total!r}",
            code="plan.total_not_positive",
        )
    return found


class _Asked(NamedTuple):
    """One question, and what its widths are compared with. prior: {parameter: half of its interval}."""

    study: Study
    id: str
    devices: int
    truths: list[Truth]
    prior: Mapping[str, float]

    @classmethod
    def of(cls, study: Study, question: Question, devices: int, seed: int) -> _Asked | None:
        """None where it has no formula."""
        try:
            empty_model(question)
        except InputError:
            return None
        own = crc32(f"{seed} {question.id}".encode())
        truths = truths_of(question, {}, None, own)
        found = cls(study, question.id, devices, truths, prior_half_widths(question, own))
        return None if found.widths(str(question.mechanism.epsilon)) is None else found

    def widths(self, epsilon: str) -> dict[str, float] | None:
        """{parameter: half width} at a budget. Raises StudyError for one that the mechanism cannot have."""
        changed = Study(with_epsilons(self.study, {self.id: epsilon})).question(self.id)
        found = half_widths(changed, self.truths, [self.devices], self.prior)
        return None if found is None else {name: float(half[0]) for name, half in found.items()}

    def relative(self, widths: Mapping[str, float]) -> float:
        """The worst of its widths over the prior's own."""
        return max(half / self.prior[name] for name, half in widths.items())

    def curve(self, total: Decimal) -> tuple[Vector, Vector]:
        """Budgets, and the worst relative width at each. Raises InputError where it can have none of them."""
        budgets, worst = [], []
        for share in LOOKED_AT:
            epsilon = float(total) * float(share)
            # Too small, or too large, for the mechanism.
            with suppress(StudyError):
                found = self.widths(f"{epsilon:.6f}")
                worst.append(1.0 if found is None else self.relative(found))
                budgets.append(epsilon)
        if not budgets:
            raise InputError(
                f"{self.id}: its mechanism can have no part of a total of {total}",
                code="plan.split_share_too_small",
            )
        # By chance of rounding a little more ε may seem to tell less.
        return np.asarray(budgets), np.minimum.accumulate(worst)


def _allotted(curves: Mapping[str, tuple[Vector, Vector]], left: Decimal) -> dict[str, str]:
    """The epsilons at which all questions are as narrow, relative to their priors, as the sum allows."""

    def wanted(worst: float) -> dict[str, float]:
        """The least epsilon of each that is at most as wide."""
        return {
            name: float(np.exp(np.interp(-worst, -widths, np.log(budgets))))
            for name, (budgets, widths) in curves.items()
        }

    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if sum(wanted(middle).values()) <= left else (middle, high)
    found = wanted(high)
    # What is left over, where widths cannot fall further, goes to all alike.
    scale = float(left) / sum(found.values())
    rounded = {name: (Decimal(epsilon * scale)).quantize(STEP, ROUND_DOWN) for name, epsilon in found.items()}
    if any(one <= 0 for one in rounded.values()):
        raise InputError(
            f"a total of {left} does not suffice for {len(rounded)} questions: take a larger one",
            code="plan.split_total_too_small",
        )
    return {name: f"{one.normalize():f}" for name, one in rounded.items()}
