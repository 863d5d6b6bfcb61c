"""How many people show a difference between two groups, by the information of their reports. Loads no JAX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import ndtr

from inference.design.information import (
    BY_INFORMATION,
    DEVICES,
    HALF,
    Prior,
    Vector,
    check_wishes,
    fewest,
    half_widths,
    has_information,
    rough_note,
)
from inference.design.plan import answers_of, check_parameter, questions_to_plan
from inference.design.truth import completed, settable, unstated
from inference.results.verdict import listed
from ldp_client.documents.errors import InputError, UsageError
from schemas import Question, Study


@dataclass(frozen=True)
class Difference:
    """Two groups whose parameter is `values`, `share` of all people in the first.

    half_widths, power: {epsilon: (devices,)}: half of the difference's 90 % interval, and how often that
    interval is on its own side of 0. needed: {epsilon: devices} for a wanted power, None if 10⁹ do not
    suffice. notes: on where the formula is rough. truth: of other parameters, as stated. assumed: of them, in
    words.
    """

    question: str
    model: str
    parameter: str
    values: tuple[float, float]
    share: float
    devices: tuple[int, ...]
    half_widths: Mapping[str, Vector]
    power: Mapping[str, Vector]
    needed: Mapping[str, int | None] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    truth: Mapping[str, float] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """This question's entry in plan.json."""
        return {
            "model": self.model,
            "method": f"{BY_INFORMATION}; of the difference of two groups",
            "difference": {"parameter": self.parameter, "values": list(self.values), "share": self.share},
            "truth": dict(self.truth),
            "assumed": list(self.assumed),
            "devices": list(self.devices),
            "half_widths": {epsilon: found.tolist() for epsilon, found in self.half_widths.items()},
            "power": {epsilon: found.tolist() for epsilon, found in self.power.items()},
            **({"devices_for_power": dict(self.needed)} if self.needed else {}),
            **({"notes": list(self.notes)} if self.notes else {}),
        }


def plan_difference(
    study: Study,
    question_id: str,
    parameter: str,
    values: tuple[float, float],
    devices: Sequence[int] = DEVICES,
    epsilons: Sequence[str] = (),
    truth: Mapping[str, float] | None = None,
    *,
    share: float = 0.5,
    power: float | None = None,
) -> Difference:
    """Predict how well a difference between two groups is found.

    Args:
        study: the study, with a public field that tells the groups.
        question_id: which of its questions.
        parameter: the parameter that differs, such as "p", "p[teacher]" or "mean".
        values: its values in the first group and in the second.
        devices: numbers of devices, of both groups together.
        epsilons: as for `plan`.
        truth: of the other parameters, in both groups: all but shares of other choices, which are equal.
        share: of all people in the first group.
        power: how many devices give this probability that the 90 % interval is on the side of 0 of the truth?

    Returns:
        Half widths, power, and devices for a wanted power.

    Raises:
        InputError: a question without a formula, a missing parameter, values that are equal or impossible, or
            arguments that `plan` refuses.
    """
    _check(values, share)
    check_wishes(power=power)
    questions = questions_to_plan(study, question_id, devices, epsilons, 0)
    question = questions[0]
    if parameter == "mean" and question.bounds is not None:
        low, high = (float(bound) for bound in question.bounds)
        for value in values:
            if not low <= value <= high:
                raise InputError(
                    f"no mean of {question.id} is {value:g}: answers lie from {low:g} to {high:g}",
                    code="plan.mean_beyond_bounds",
                )
    chosen = tuple(sorted(set(devices)))
    at = {
        str(question.mechanism.epsilon): _Groups(study, question, parameter, values, share, truth or {})
        for question in questions
    }
    halves = {epsilon: groups.half_widths(chosen) for epsilon, groups in at.items()}
    chances = {epsilon: groups.power(chosen) for epsilon, groups in at.items()}
    needed = {} if power is None else {epsilon: groups.devices_for(power) for epsilon, groups in at.items()}
    notes = tuple(note for groups in at.values() for note in groups.notes(chosen))
    head = (question_id, question.model.name, parameter, values, share, chosen)
    assumed = _assumed(question, {**(truth or {}), parameter: values[0]})
    return Difference(*head, halves, chances, needed, notes, dict(truth or {}), assumed)


def _check(values: tuple[float, float], share: float) -> None:
    if not 0 < share < 1:
        raise UsageError(
            f"the share of the first group must lie between 0 and 1, not {share:g}",
            code="plan.wrong_group_share",
        )
    if values[0] == values[1]:
        raise UsageError(
            f"--difference needs two values that differ, not {values[0]:g} twice", code="plan.equal_values"
        )


def _shares(question: Question) -> list[str]:
    """The names of a choice's shares."""
    return [f"p[{label}]" for label in question.choices] if question.ask == "choice" else []


def _assumed(question: Question, stated: Mapping[str, float]) -> tuple[str, ...]:
    rest = [name for name in _shares(question) if name not in stated]
    said = "share the remainder equally in each group (not stated: --truth"
    return (f"{listed(rest)} {said} {rest[0]}=…)",) if len(rest) > 1 else ()


class _Groups:
    """Two groups of people at one epsilon."""

    def __init__(
        self,
        study: Study,
        question: Question,
        parameter: str,
        values: tuple[float, float],
        share: float,
        truth: Mapping[str, float],
    ) -> None:
        if not has_information(question):
            otherwise = (
                "plan each group's own sum, and take the root of both squares together"
                if study.protocol is not None
                else "plan its --formula with the groups' public field"
            )
            raise InputError(
                f"{question.id}: there is no formula for {question.model.name} under "
                f"{question.mechanism.name}: {otherwise}",
                code="plan.no_formula_for_difference",
            )
        self._study, self._question, self._parameter = study, question, parameter
        self._apart, self._shares = abs(values[1] - values[0]), (share, 1 - share)
        self._prior = Prior(question)
        self._prior_half = self._prior.half_widths()
        # Shares that are not stated are equal.
        shares = _shares(question)
        drawn = {**self._prior.draws(1, 0)[0], **dict.fromkeys(shares, 1 / max(len(shares), 1))}
        check_parameter(question, drawn, parameter)
        self._truths = [completed(question, drawn, {**truth, parameter: value}) for value in values]
        for name in settable(question, drawn):
            if name not in (*truth, parameter, *shares):
                raise unstated(name)

    def half_widths(self, devices: Sequence[int]) -> Vector:
        """Return half of the difference's 90 % interval, (devices,)."""
        squared = np.zeros(len(devices))
        for share, truth in zip(self._shares, self._truths, strict=True):
            answers = [max(round(share * answers_of(self._study, n)), 1) for n in devices]
            squared += half_widths(self._question, [truth], answers, self._prior)[self._parameter] ** 2
        return np.sqrt(squared)

    def notes(self, devices: Sequence[int]) -> tuple[str, ...]:
        """Return a note if posteriors are too wide to be normal."""
        relative = self.half_widths(devices) / (np.sqrt(2) * self._prior_half[self._parameter])
        epsilon = str(self._question.mechanism.epsilon)
        return rough_note(epsilon, relative, devices, "the results here are rough")

    def power(self, devices: Sequence[int]) -> Vector:
        """Return how often the interval is on the truth's side of 0, (devices,)."""
        half = self.half_widths(devices)
        # The interval's middle lies between the prior's and the estimate, by how much reports tell.
        prior = np.sqrt(2) * self._prior_half[self._parameter]
        learnt = 1 - np.minimum(half / prior, 1 - 1e-9) ** 2
        return np.asarray(ndtr((learnt * self._apart - half) / (np.sqrt(learnt) * half / HALF)))

    def devices_for(self, power: float) -> int | None:
        """Return how many devices give at least this power; None if a thousand million do not."""
        least = len(self._study.questions) if self._study.sample_one_question else 1
        return fewest(lambda n: n >= least and self.power([n])[0] >= power)
