"""Plans: the expected posterior widths of a question, of a difference of groups, or of a formula.

Widths are by information where that has a formula, and from simulated studies otherwise: only those load JAX.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from decimal import ROUND_DOWN, Decimal
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from inference.design.information import (
    BY_INFORMATION,
    DEVICES,
    HALF,
    ROUGH,
    Prior,
    half_widths,
    has_information,
    rough_notes,
    share_beyond_bounds,
)
from inference.design.records import ROUGH as ROUGH_LINE
from inference.design.records import RecordPrior, is_line_of_records, record_widths
from inference.design.truth import completed, settable
from inference.limits import check_devices, check_seed
from inference.results.verdict import DROWNED, listed
from ldp_client import mechanism_for
from ldp_client.documents.errors import InputError, UsageError
from schemas import Question, Study
from schemas.disk import chosen_questions
from summaries import check_study

Vector = NDArray[np.float64]
# {epsilon: {parameter: (devices,)}}.
Widths = Mapping[str, Mapping[str, Vector]]

# Shares of answers beyond their bounds: above the first a note reports it, above the second the truth is
# refused.
FEW_CLIPPED, NEARLY_ALL = 0.01, 0.99
# Multiples of the study's epsilon, if a plan gets no list.
AROUND = (0.5, 1, 2)


@dataclass(frozen=True)
class Plan:
    """The expected widths of one question, difference or formula.

    Attributes:
        question: its id, or the formula's outcome.
        model: its model's name, or the formula.
        devices: numbers of devices, increasing.
        half_widths: {epsilon: {parameter: (devices,)}}: half a 90 % interval; medians if truths are drawn.
        truth: {parameter: value} as stated.
        notes: what is assumed, and where widths are rough.
        effects: {parameter: its true effect}, whose intervals may or may not contain 0.
        method: in words.
        odds: parameters whose exp is an odds ratio.
    """

    question: str
    model: str
    devices: tuple[int, ...]
    half_widths: Widths
    truth: Mapping[str, float]
    notes: tuple[str, ...] = ()
    effects: Mapping[str, float] = field(default_factory=dict)
    method: str = BY_INFORMATION
    odds: tuple[str, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of the parameters, in the question's own units."""
        return tuple(next(iter(self.half_widths.values())))

    def power(self, epsilon: str, name: str) -> Vector:
        """Return how often the interval of an effect lies on its own side of 0, (devices,)."""
        return np.asarray(ndtr(HALF * (abs(self.effects[name]) / self.half_widths[epsilon][name] - 1)))

    def devices_for(self, epsilon: str, name: str, width: float) -> float:
        """Return about how many devices make a half width at most `width`."""
        return devices_for(width, self.devices, self.half_widths[epsilon][name])

    def devices_for_power(self, epsilon: str, name: str, power: float) -> float:
        """Return about how many devices find an effect with this probability."""
        width = abs(self.effects[name]) * HALF / (HALF + float(ndtri(power)))
        return self.devices_for(epsilon, name, width)

    def to_document(self) -> dict[str, Any]:
        """This question's entry in plan.json."""
        power = {
            epsilon: {name: self.power(epsilon, name).tolist() for name in self.effects}
            for epsilon in self.half_widths
        }
        return {
            "model": self.model,
            "method": self.method,
            "truth": dict(self.truth),
            "notes": list(self.notes),
            "devices": list(self.devices),
            "half_widths": {
                epsilon: {name: half.tolist() for name, half in widths.items()}
                for epsilon, widths in self.half_widths.items()
            },
            **({"power": power} if self.effects else {}),
        }


def plan(
    study: Study,
    question_id: str,
    devices: Sequence[int] = DEVICES,
    epsilons: Sequence[str] = (),
    truth: Mapping[str, float] | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _message: None,
) -> Plan:
    """Predict the posterior widths of one question, for numbers of devices and budgets.

    Args:
        study: the study.
        question_id: which of its questions.
        devices: numbers of devices to compare.
        epsilons: decimals, in nats; by default half, once and twice the study's.
        truth: {parameter: value} in the question's own units; missing parameters are drawn from the prior.
        seed: of all random draws.
        progress: is called with sentences on the progress of a simulation.

    Returns:
        Half widths of 90 % intervals, medians over truths, by epsilon, devices and parameter.

    Raises:
        InputError: a seed, numbers of devices, a question or truth that cannot be planned for.
        StudyError: an epsilon that the mechanism cannot have.
    """
    questions = questions_to_plan(study, question_id, devices, epsilons, seed)
    first, given, own_seed = questions[0], dict(truth or {}), crc32(f"{seed} {question_id}".encode())
    chosen = tuple(sorted(set(devices)))
    answers = [answers_of(study, n) for n in chosen]
    if has_formula(first):
        found = _by_information(questions, chosen, answers, given, own_seed)
    else:
        from inference.compiling import use_compile_cache
        from inference.design.widths import by_simulation

        use_compile_cache()
        found = by_simulation(questions, chosen, answers, given, own_seed, progress)
    notes = (
        *found.notes,
        *prior_width_notes(found.half_widths, chosen, found.prior_half_widths),
        *drawn_note(first, found.truths),
    )
    return Plan(first.id, first.model.name, chosen, found.half_widths, given, notes, method=found.method)


class Expected(NamedTuple):
    """The expected widths of a question, at several epsilons.

    half_widths: as of a `Plan`. prior_half_widths: {parameter: half of its prior's 90 % interval}. truths:
    {parameter: value} of each truth over which widths are medians.
    """

    half_widths: Widths
    prior_half_widths: Mapping[str, float]
    truths: Sequence[Mapping[str, float]]
    notes: tuple[str, ...]
    method: str = BY_INFORMATION


def _by_information(
    questions: Sequence[Question],
    devices: tuple[int, ...],
    answers: Sequence[int],
    given: Mapping[str, float],
    seed: int,
) -> Expected:
    """Return a question's widths by the information of its reports."""
    first = questions[0]
    prior: Prior | RecordPrior
    if first.ask == "record":
        prior, limit = RecordPrior(first), ROUGH_LINE
        completed(first, dict.fromkeys(prior.names, 1.0), given)
        points = prior.truths(seed, given)
        truths = [prior.line(point) for point in points]
        widths_at = partial(record_widths, truths=points, answers=answers, prior=prior)
    else:
        prior, limit = Prior(first), ROUGH
        truths = [{**values, **completed(first, values, given)} for values in prior.truths(seed)]
        widths_at = partial(half_widths, truths=truths, answers=answers, prior=prior)
    each = {str(question.mechanism.epsilon): widths_at(question) for question in questions}
    notes: tuple[str, ...] = ()
    if given and first.ask == "number":
        beyond = float(np.mean([share_beyond_bounds(first, truth) for truth in truths]))
        notes = clipping_notes(first, beyond, given)
    if first.ask in ("number", "record"):
        rough = {
            epsilon: np.max([half / prior.half_widths[name] for name, half in widths.items()], axis=0) > limit
            for epsilon, widths in each.items()
        }
        notes += rough_notes(rough, devices)
    return Expected(each, prior.half_widths, truths, notes)


def plan_difference(
    study: Study,
    question_id: str,
    parameter: str,
    values: tuple[float, float],
    devices: Sequence[int] = DEVICES,
    epsilons: Sequence[str] = (),
    truth: Mapping[str, float] | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _message: None,
) -> Plan:
    """Predict how well a difference between two equal groups is found.

    Args:
        study: the study, with a public field that tells the groups.
        question_id: which of its questions.
        parameter: the parameter that differs, such as "p", "p[teacher]" or "mean".
        values: its values in the first group and in the second.
        devices: numbers of devices, of both groups together.
        epsilons: as for `plan`.
        truth: of the other parameters, in both groups; shares of other choices are equal by default.
        seed: as for `plan`.
        progress: as for `plan`.

    Returns:
        Half widths of the difference, and its power.

    Raises:
        UsageError: values that are equal.
        InputError: a missing parameter, values that are impossible, or arguments that `plan` refuses.
    """
    if values[0] == values[1]:
        raise UsageError(
            f"--difference needs two values that differ, not {values[0]:g} twice", code="plan.equal_values"
        )
    first, given = questions_to_plan(study, question_id, devices, epsilons, seed)[0], dict(truth or {})
    chosen = tuple(sorted(set(devices)))
    halves = [max(n // 2, 1) for n in chosen]
    # 1. Plan each group alone. Shares that are not stated share the remainder equally.
    rest = [f"p[{label}]" for label in first.choices] if first.ask == "choice" else []
    rest = [name for name in rest if name not in (*given, parameter)]
    groups = []
    for value in values:
        stated = {**given, parameter: value}
        left = 1 - sum(share for name, share in stated.items() if name.startswith("p["))
        stated |= dict.fromkeys(rest, max(left, 0) / max(len(rest), 1))
        groups.append(plan(study, question_id, halves, epsilons, stated, seed, progress))
    # 2. Add up the variances of both groups.
    name = f"{parameter}: {values[0]:g} − {values[1]:g}"
    widths = {}
    for epsilon in groups[0].half_widths:
        each = [group.half_widths[epsilon][parameter] for group in groups]
        widths[epsilon] = {name: np.hypot(*each)[np.searchsorted(groups[0].devices, halves)]}
    notes = tuple(dict.fromkeys(f"of each group: {note}" for group in groups for note in group.notes))
    # 3. Name what is assumed.
    if len(rest) > 1:
        how = f"share the remainder equally in each group (not stated: --truth {rest[0]}=…)"
        notes = (f"assumed: {listed(rest)} {how}", *notes)
    effects = {name: values[0] - values[1]}
    return Plan(first.id, first.model.name, chosen, widths, given, notes, effects, method=groups[0].method)


def has_formula(question: Question) -> bool:
    """Return True if a question's widths need no simulation."""
    return has_information(question) or is_line_of_records(question)


def check_plannable(question: Question) -> None:
    """Raise InputError for a question that has no formula, and that cannot be simulated."""
    if not has_formula(question):
        from inference.design.calibration import empty_model

        empty_model(question)


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


def drawn_note(question: Question, truths: Sequence[Mapping[str, float]]) -> tuple[str, ...]:
    """Return a note on the parameters that could be stated, and were not: truths differ in them."""
    first = settable(question, truths[0])
    drawn = [name for name in first if any(truth[name] != first[name] for truth in truths)]
    if not drawn:
        return ()
    return (f"not stated, {listed(drawn)}: as the prior draws it; --truth states it",)


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
    if isinstance(epsilons, str):
        raise UsageError(
            "epsilons must be a list of decimals, such as ['0.5', '1']", code="plan.epsilons_wrong_form"
        )
    for n in devices:
        check_devices(n)
        answers_of(study, n)
    stated = float(study.question(question_id).mechanism.epsilon)
    around = [f"{factor * stated:.6g}" for factor in AROUND]
    return [at_epsilon(study, question_id, epsilon) for epsilon in epsilons or around]


def at_epsilon(study: Study, question_id: str, epsilon: str) -> Question:
    """Return a question at another epsilon, and scale a memoized mechanism's spending. Raises StudyError."""
    document = deepcopy(study.document)
    (mechanism,) = [asked["mechanism"] for asked in document["questions"] if asked["id"] == question_id]
    if "instantaneous_epsilon" in mechanism:
        part = Decimal(mechanism["instantaneous_epsilon"]) / Decimal(mechanism["epsilon"])
        again = (part * Decimal(epsilon)).quantize(Decimal("0.000001"), ROUND_DOWN)
        mechanism["instantaneous_epsilon"] = f"{again:f}"
    mechanism["epsilon"] = f"{Decimal(epsilon):f}"
    question = Study(document).question(question_id)
    mechanism_for(question)
    return question


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


def prior_width_notes(each: Widths, devices: Sequence[int], prior: Mapping[str, float]) -> tuple[str, ...]:
    """Return notes if an expected width is the prior's own: nothing would be learnt there, or at all.

    prior: {parameter: half of its prior's 90 % interval}.
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
                f"hopeless at epsilon {epsilon}: even {devices[-1]:,} people leave {listed(hopeless)} about "
                "as wide as the prior is, so that the reports would say nothing of it"
            )
        if early:
            notes.append(
                f"at epsilon {epsilon} the width is the prior's own: of {listed(early)} people; a fit would "
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
