"""The expected posterior widths of a question against the number of devices and epsilon.

Loads JAX only to simulate studies: widths by information need none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from inference.design.budgets import around, at_epsilon
from inference.design.information import (
    BY_INFORMATION,
    DEVICES,
    Prior,
    half_widths,
    has_information,
    rough_note,
    share_beyond_bounds,
)
from inference.design.truth import completed, settable
from inference.limits import check_devices, check_seed
from inference.results.prior_notes import DROWNED
from inference.results.verdict import listed
from ldp_client.documents.errors import InputError, UsageError
from schemas import Question, Study
from schemas.disk import chosen_questions
from summaries import check_study

Vector = NDArray[np.float64]

# Simulated studies for each number of devices and epsilon.
REPEATS = 10
SIMULATED = f"NUTS on {REPEATS} simulated studies a cell; median half width of the 90 % interval"
# Shares of answers beyond their bounds: above the first a note reports it, above the second the truth is
# refused.
FEW_CLIPPED, NEARLY_ALL = 0.01, 0.99


@dataclass(frozen=True)
class Plan:
    """The expected widths of one question.

    Attributes:
        question: its id.
        model: its model's name.
        seed: of all random draws.
        devices: numbers of devices, increasing.
        parameters: names, in the question's own units.
        truth: {parameter: value} if it was given.
        half_widths: {epsilon: (devices, parameters)}: half a 90 % interval, medians over truths.
        notes: for readers.
        simulated: whether half_widths are of simulated studies, or by information.
        drawn: parameters that the prior drew, so that half_widths are medians over its draws.
    """

    question: str
    model: str
    seed: int
    devices: tuple[int, ...]
    parameters: tuple[str, ...]
    truth: Mapping[str, float]
    half_widths: Mapping[str, Vector]
    notes: tuple[str, ...] = ()
    simulated: bool = True
    drawn: tuple[str, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """This question's entry in plan.json."""
        return {
            "model": self.model,
            "method": SIMULATED if self.simulated else BY_INFORMATION,
            "truth": dict(self.truth) or "drawn from the prior",
            "drawn": list(self.drawn),
            "notes": list(self.notes),
            "devices": list(self.devices),
            "half_widths": {
                epsilon: dict(zip(self.parameters, halves.T.tolist(), strict=True))
                for epsilon, halves in self.half_widths.items()
            },
        }


def plan(
    study: Study,
    question_id: str,
    devices: Sequence[int] = DEVICES,
    epsilons: Sequence[str] = (),
    truth: Mapping[str, float] | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _message: None,
    *,
    parameter: str | None = None,
    simulated: bool = True,
) -> Plan:
    """Predict the posterior widths of one question, for numbers of devices and budgets.

    Args:
        study: the study.
        question_id: which of its questions.
        devices: numbers of devices to compare.
        epsilons: decimals, in nats; by default half, once and twice the study's.
        truth: {parameter: value} in the question's own units; missing parameters are drawn from the prior.
        seed: of all random draws.
        progress: is called with sentences on the progress.
        parameter: a parameter that the plan must have.
        simulated: whether to simulate studies; otherwise all is from a formula, immediately.

    Returns:
        Half widths of 90 % intervals, medians over truths, by epsilon, devices and parameter.

    Raises:
        InputError: a seed, numbers of devices, a question, parameter or truth that cannot be planned for, or
            a question without a formula if nothing is simulated.
        StudyError: an epsilon that the mechanism cannot have.
    """
    return plan_each(
        study,
        [question_id],
        devices,
        epsilons,
        truth or {},
        seed,
        progress,
        parameter=parameter,
        simulated=simulated,
    )[0]


def plan_each(
    study: Study,
    names: Sequence[str],
    devices: Sequence[int],
    epsilons: Sequence[str],
    truth: Mapping[str, float],
    seed: int,
    progress: Callable[[str], None],
    *,
    parameter: str | None = None,
    simulated: bool = True,
) -> list[Plan]:
    """`plan` for several questions, whose studies are simulated together."""
    asked = {name: questions_to_plan(study, name, devices, epsilons, seed) for name in names}
    chosen = tuple(sorted(set(devices)))
    answers = [answers_of(study, n) for n in chosen]
    if simulated:
        from inference.design.widths import simulated_plans

        return simulated_plans(asked, chosen, answers, truth, seed, progress, parameter)
    return [_by_information(each, chosen, answers, truth, seed, parameter) for each in asked.values()]


def _by_information(
    questions: Sequence[Question],
    devices: tuple[int, ...],
    answers: Sequence[int],
    given: Mapping[str, float],
    seed: int,
    parameter: str | None,
) -> Plan:
    """Plan a question at several epsilons by the information of its reports."""
    # 1. Draw truths from the prior.
    first = questions[0]
    check_information(first)
    prior = Prior(first)
    drawn = prior.truths(crc32(f"{seed} {first.id}".encode()))
    truths = [completed(first, values, given) for values in drawn]
    check_parameter(first, truths[0], parameter)
    notes: tuple[str, ...] = ()
    if given and first.ask == "number":
        beyond = float(np.mean([share_beyond_bounds(first, truth) for truth in truths]))
        notes = clipping_notes(first, beyond, given)
    # 2. Compute the widths.
    each = {str(one.mechanism.epsilon): half_widths(one, truths, answers, prior) for one in questions}
    # 3. Note what readers must know.
    halves = prior.half_widths()
    if first.ask == "number":
        for epsilon, widths in each.items():
            relative = np.max([half / halves[name] for name, half in widths.items()], axis=0)
            notes += rough_note(epsilon, relative, devices, "the formula is rough: simulate there")
    notes += prior_width_notes(each, devices, halves)
    return Plan(
        question=first.id,
        model=first.model.name,
        seed=seed,
        devices=devices,
        parameters=tuple(next(iter(each.values()))),
        truth=given,
        half_widths={epsilon: np.stack(list(widths.values()), axis=-1) for epsilon, widths in each.items()},
        notes=notes,
        simulated=False,
        drawn=drawn_parameters(first, truths),
    )


def check_information(question: Question) -> None:
    """Raise InputError for a question whose widths have no formula."""
    if not has_information(question):
        raise InputError(
            f"{question.id}: there is no formula for {question.model.name} under {question.mechanism.name}: "
            "leave --at-once out, so that studies are simulated",
            code="plan.no_formula",
        )


def plannable(study: Study, question_id: str | None, check: Callable[[Question], object]) -> list[str]:
    """Return the chosen question, or all that pass a check; the others are named on standard error.

    Raises InputError if none passes.
    """
    chosen = chosen_questions(study.questions, question_id)
    names = []
    for question in chosen:
        try:
            check(question)
        except InputError as error:
            if len(chosen) == 1:
                raise
            print(f"left out: {error}", file=sys.stderr, flush=True)
            continue
        names.append(question.id)
    if not names:
        raise InputError("no question of this study can be planned", code="plan.no_question_to_plan")
    return names


def drawn_parameters(question: Question, truths: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """Return the parameters that could be stated, and were not: truths differ in them."""
    first = settable(question, truths[0])
    return tuple(name for name in first if any(truth[name] != first[name] for truth in truths))


def check_parameter(question: Question, truth: Mapping[str, float], parameter: str | None) -> None:
    """Raise InputError if the plan lacks a required parameter."""
    if parameter is not None and parameter not in truth:
        raise InputError(
            f"{parameter!r} is no parameter of {question.id}, which has {listed(list(truth))}",
            code="plan.unknown_parameter",
        )


def clipping_notes(question: Question, share: float, given: Mapping[str, float]) -> tuple[str, ...]:
    """Return a note on the share of answers beyond their bounds, at a given truth or under the prior.

    Raises InputError for a given truth that leaves hardly an answer between the bounds.
    """
    stated = ", ".join(f"{name}={value:g}" for name, value in given.items())
    if given and share > NEARLY_ALL:
        raise InputError(
            f"{question.id}: with {stated} {share:.0%} of the answers lie beyond their bounds, where devices "
            "clip them: is it in the question's own units?",
            code="plan.answers_beyond_bounds",
        )
    if share <= FEW_CLIPPED:
        return ()
    which = f"with {stated}" if given else "under the prior"
    beyond = "the bounds: devices clip them, and so does this plan"
    if question.ask == "record":
        beyond = "their bounds or their norm: devices clip them, which regressions do not know of"
    return (f"{which} {share:.0%} of the answers lie beyond {beyond}",)


def questions_to_plan(
    study: Study, question_id: str, devices: Sequence[int], epsilons: Sequence[str], seed: int
) -> list[Question]:
    """Return the question at each epsilon. Raises the errors of `plan`, before anything is simulated."""
    check_study(study)
    check_seed(seed)
    if not any(question.id == question_id for question in study.questions):
        raise InputError(f"the study has no question {question_id!r}", code="study.unknown_question")
    if isinstance(devices, str) or not isinstance(devices, Sequence) or not devices:
        raise UsageError("a plan needs a list of numbers of devices", code="plan.devices_missing")
    if isinstance(epsilons, str):
        raise UsageError(
            "epsilons must be a list of decimals, such as ['0.5', '1']", code="plan.epsilons_wrong_form"
        )
    for n in devices:
        check_devices(n)
        answers_of(study, n)
    return [at_epsilon(study, question_id, epsilon) for epsilon in epsilons or around(study, question_id)]


def answers_of(study: Study, devices: int) -> int:
    """Return how many answers each question gets from so many devices: fewer if each device answers one.

    Raises InputError if there would be none.
    """
    if not study.sample_one_question:
        return devices
    if devices < len(study.questions):
        raise InputError(
            f"{devices} devices are too few: each answers 1 of {len(study.questions)} questions. Plan more",
            code="plan.too_few_devices",
        )
    return devices // len(study.questions)


def prior_width_notes(
    each: Mapping[str, Mapping[str, Vector]], devices: Sequence[int], prior: Mapping[str, float]
) -> tuple[str, ...]:
    """Return notes if an expected width is the prior's own: nothing would be learnt there, or at all.

    each: {epsilon: {parameter: (devices,)}}. prior: {parameter: half of its prior's 90 % interval}.
    """
    notes = []
    for epsilon, widths in each.items():
        drowned = {name: half > DROWNED * prior.get(name, np.inf) for name, half in widths.items()}
        hopeless = [name for name, where in drowned.items() if where[-1]]
        early = [
            f"{name} up to {devices[int(np.flatnonzero(where)[-1])]:,}"
            for name, where in drowned.items()
            if where.any() and not where[-1]
        ]
        if hopeless:
            notes.append(
                f"hopeless at epsilon {epsilon}: even {devices[-1]:,} devices leave {listed(hopeless)} about "
                "as wide as the prior is, so that the reports would say nothing of it"
            )
        if early:
            notes.append(
                f"at epsilon {epsilon} the width is the prior's own: of {listed(early)} devices; a fit would "
                "call that not learnt"
            )
    return tuple(notes)


def devices_for(width: float, devices: Sequence[int], halves: Vector) -> float:
    """Return about how many devices make the half width at most `width`; halves (devices,): as planned.

    Between planned numbers log width is linear in log devices; beyond the last one width falls by 1/√n. If
    the fewest planned devices already suffice, the result is at most that number: it may be smaller.
    """
    # Simulated medians may increase by chance; a wider median at more devices also counts for fewer devices.
    widths = np.maximum.accumulate(halves[::-1])[::-1]
    if width >= widths[0]:
        return float(devices[0])
    if width < widths[-1]:
        return float(devices[-1] * (widths[-1] / width) ** 2)
    logs = np.interp(np.log(width), np.log(widths[::-1]), np.log(np.asarray(devices, float)[::-1]))
    return float(np.exp(logs))
