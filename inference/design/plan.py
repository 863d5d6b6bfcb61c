"""The expected posterior width of one parameter against the number of devices and epsilon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from inference.design import at_once
from inference.design.budgets import around, at_epsilon
from inference.design.calibration import empty_model, mixing_notes, prior_truths
from inference.design.simulated_posteriors import Measured, Progress, Studies, fit_studies
from inference.design.simulation import clipped_share, for_devices
from inference.design.truth import with_truth
from inference.design.widths import TAILS, Widths, largest, studies_of, widths_of
from inference.limits import check_devices, check_seed
from inference.models import family_of
from inference.models.base import Truth
from inference.results.diagnostics import listed
from inference.results.prior_notes import DROWNED
from ldp_client.documents.errors import InputError, UsageError
from schemas import Question, Study
from summaries import check_study

Vector = NDArray[np.float64]

DEVICES = (1_000, 10_000, 100_000)
REPEATS = 10
SIMULATED = f"NUTS on {REPEATS} simulated studies a cell; median half width of the 90 % interval"
# Shares of answers beyond their bounds: above the first a note reports it, above the second the truth is
# refused.
FEW_CLIPPED, NEARLY_ALL = 0.01, 0.99
# Enough for the prior's 5 % and 95 % quantiles to about two digits.
PRIOR_DRAWS = 2_000
# A median of widths hardly moves if fewer chains than these mix poorly.
SOME_MIX_POORLY = 0.25


@dataclass(frozen=True)
class Plan:
    """half_widths: {epsilon: (devices, parameters)}: medians over simulated studies of half a 90 % interval.

    devices: numbers of devices, increasing. parameters: names, in own units. truth: {parameter: value} if it
    was given. drawn: parameters that the prior drew REPEATS times, so that half_widths are medians over them.
    notes: for readers. at_once: as half_widths, from a formula, if there is one. simulated: whether
    half_widths are from simulated studies; otherwise they are the formula's. repeats: of the drawn.
    """

    question: str
    model: str
    seed: int
    devices: tuple[int, ...]
    parameters: tuple[str, ...]
    truth: Mapping[str, float]
    half_widths: Mapping[str, Vector]
    notes: tuple[str, ...] = ()
    at_once: Mapping[str, Vector] = field(default_factory=dict)
    simulated: bool = True
    drawn: tuple[str, ...] = ()
    repeats: int = REPEATS

    def to_document(self) -> dict[str, Any]:
        """This question's entry in plan.json."""
        return {
            "model": self.model,
            "method": SIMULATED if self.simulated else at_once.AT_ONCE,
            "truth": dict(self.truth) or "drawn from the prior",
            "drawn": list(self.drawn),
            "notes": list(self.notes),
            "devices": list(self.devices),
            "half_widths": self._by_parameter(self.half_widths),
            **({"at_once": self._by_parameter(self.at_once)} if self.at_once and self.simulated else {}),
        }

    def _by_parameter(self, widths: Mapping[str, Vector]) -> dict[str, Any]:
        return {
            epsilon: dict(zip(self.parameters, found.T.tolist(), strict=True))
            for epsilon, found in widths.items()
        }


def plan(
    study: Study,
    question_id: str,
    devices: Sequence[int] = DEVICES,
    epsilons: Sequence[str] = (),
    truth: Mapping[str, float] | None = None,
    seed: int = 0,
    progress: Progress = lambda _message: None,
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
        Half widths of 90 % intervals, medians over simulated studies, by epsilon, devices and parameter.

    Raises:
        InputError: a seed, numbers of devices, a question, parameter or truth that cannot be planned for, or
            a question without a formula if nothing is simulated.
        StudyError: an epsilon that the mechanism cannot have.
    """
    options = {"parameter": parameter, "simulated": simulated}
    return plan_each(
        study, [question_id], devices, epsilons, truth or {}, seed, progress=progress, **options
    )[0]


def plan_each(
    study: Study,
    names: Sequence[str],
    devices: Sequence[int],
    epsilons: Sequence[str],
    truth: Mapping[str, float],
    seed: int,
    progress: Progress,
    **options: Any,
) -> list[Plan]:
    """`plan` for several questions, whose studies are simulated together."""
    each = [_Planned(study, name, devices, epsilons, truth, seed, progress, **options) for name in names]
    found = iter(fit_studies([studies for one in each for studies in one.studies], progress))
    return [one.plan([next(found) for _ in one.studies]) for one in each]


class _Planned:
    """One question to plan; studies: those to simulate for it."""

    def __init__(
        self,
        study: Study,
        question_id: str,
        devices: Sequence[int],
        epsilons: Sequence[str],
        truth: Mapping[str, float],
        seed: int,
        progress: Progress,
        parameter: str | None = None,
        simulated: bool = True,
    ) -> None:
        self._stated, self._seed = truth, seed
        self._questions = questions_to_plan(study, question_id, devices, epsilons, seed)
        self._devices, self._own_seed = tuple(sorted(set(devices))), crc32(f"{seed} {question_id}".encode())
        self._answers = [answers_of(study, n) for n in self._devices]
        first, self._simulated = self._questions[0], simulated
        drawn = prior_truths(first, REPEATS, self._own_seed)
        self._truths = [with_truth(first, one, truth) for one in drawn]
        if parameter is not None:
            check_parameter(first, self._truths[0], parameter)
        self._notes = _clipping(first, self._truths, truth, self._own_seed)
        self._prior = prior_half_widths(first, self._own_seed)
        self._known = _at_once(self._questions, self._truths, self._answers, self._prior)
        self.studies: list[Studies] = []
        self._studies_of: dict[str, slice] = {}
        if not simulated:
            return
        for epsilon, known in (self._known or {}).items():
            said = at_once.in_words(epsilon, known.parameters[0], known.half[:, 0], self._devices)
            progress(f"{question_id}: {said}")
        for question in self._questions:
            begin = len(self.studies)
            self.studies += studies_of(question, self._truths, self._answers, self._own_seed)
            self._studies_of[str(question.mechanism.epsilon)] = slice(begin, len(self.studies))

    def plan(self, results: Sequence[Measured]) -> Plan:
        """Return the plan, from the statistics of the studies."""
        first, chosen, notes = self._questions[0], self._devices, self._notes
        if self._simulated:
            found = {
                epsilon: widths_of(results[own], len(self._truths))
                for epsilon, own in self._studies_of.items()
            }
        elif self._known is None:
            raise InputError(
                f"{first.id}: there is no formula for {first.model.name} under {first.mechanism.name}: "
                "leave --at-once out, so that studies are simulated",
                code="plan.no_formula",
            )
        else:
            found = self._known
            for epsilon, widths in found.items():
                halves = dict(zip(widths.parameters, widths.half.T, strict=True))
                notes += at_once.rough_note(epsilon, halves, chosen, self._prior)
        notes += mixing_notes(largest([one.poor for one in found.values()]), SOME_MIX_POORLY)
        names = next(reversed(found.values())).parameters
        notes += prior_widths(found, chosen, self._prior)
        head = (first.id, first.model.name, self._seed, chosen, names, self._stated)
        halves = {epsilon: widths.half for epsilon, widths in found.items()}
        known = (self._known or {}).items()
        by_formula = {epsilon: widths.half for epsilon, widths in known if widths.parameters == names}
        return Plan(*head, halves, notes, by_formula, self._simulated, _drawn(first, self._truths))


def _drawn(question: Question, truths: Sequence[Truth]) -> tuple[str, ...]:
    """Return the parameters that could be stated, and were not: truths differ in them."""
    first = family_of(question).settable(truths[0].parameters)
    return tuple(name for name in first if any(one.parameters[name] != first[name] for one in truths))


def _at_once(
    questions: Sequence[Question], truths: list[Truth], answers: Sequence[int], prior: Mapping[str, float]
) -> dict[str, Widths] | None:
    """{ε: half widths} by a formula; None if there is none."""
    found: dict[str, Widths] = {}
    for question in questions:
        known = at_once.half_widths(question, truths, answers, prior)
        if known is None:
            return None
        widths = np.stack(list(known.values()), axis=-1)
        found[str(question.mechanism.epsilon)] = Widths(tuple(known), widths, dict.fromkeys(known, 0.0))
    return found


def check_parameter(question: Question, truth: Truth, parameter: str) -> None:
    """Raise InputError if the plan lacks a required parameter."""
    if parameter not in truth.parameters:
        known = listed(list(truth.parameters))
        raise InputError(
            f"{parameter!r} is no parameter of {question.id}, which has {known}",
            code="plan.unknown_parameter",
        )


def _clipping(
    question: Question, truths: Sequence[Truth], given: Mapping[str, float], seed: int
) -> tuple[str, ...]:
    """Return a note on clipping by devices: always for records, for numbers if the truth was given.

    Raises InputError for a given truth that leaves hardly an answer between the bounds.
    """
    if not given and question.norm is None:
        return ()
    random = np.random.default_rng([seed, 3])
    share = float(np.mean([clipped_share(question, truth, random) for truth in truths]))
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
    if question.norm is not None:
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
    questions = [
        at_epsilon(study, question_id, epsilon) for epsilon in epsilons or around(study, question_id)
    ]
    for question in questions:
        empty_model(for_devices(question, min(devices)))
    return questions


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


def prior_half_widths(question: Question, seed: int) -> dict[str, float]:
    """{parameter: half of the prior's own 90 % interval}."""
    truths = prior_truths(question, PRIOR_DRAWS, seed)
    values = {name: [one.parameters[name] for one in truths] for name in truths[0].parameters}
    return {name: float(np.diff(np.quantile(one, TAILS))[0]) / 2 for name, one in values.items()}


def prior_widths(
    found: Mapping[str, Widths], devices: Sequence[int], prior: Mapping[str, float]
) -> tuple[str, ...]:
    """Return notes if an expected width is the prior's own: nothing would be learnt there, or at all.

    prior: {parameter: half of its prior's 90 % interval}.
    """
    notes = []
    for epsilon, widths in found.items():
        own = np.asarray([prior.get(name, np.inf) for name in widths.parameters])
        drowned = widths.half > DROWNED * own
        hopeless = [name for name, all_ in zip(widths.parameters, drowned[-1], strict=True) if all_]
        early = [
            f"{name} up to {devices[int(np.flatnonzero(column)[-1])]:,}"
            for name, column in zip(widths.parameters, drowned.T, strict=True)
            if column.any() and not column[-1]
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
