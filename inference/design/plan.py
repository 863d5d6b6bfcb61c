"""Plans: the expected posterior widths of a question, of a difference of groups, or of a formula.

Widths are by information where that has a formula, and from simulated studies otherwise: only those load JAX.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import exp
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from inference.design import information
from inference.design.notes import Widths, clipping_notes, drawn_note, prior_width_notes, rough_notes
from inference.design.questions import answers_of, has_formula, questions_to_plan
from inference.design.records import RecordPrior
from inference.results.intervals import rounded_up
from inference.results.verdict import listed
from ldp_client.documents.errors import UsageError
from ldp_client.words.text import visible
from schemas import Study

Vector = NDArray[np.float64]

# The most devices that are considered for a power, and how often this range is halved.
MOST_DEVICES, HALVINGS = 1e12, 40


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
        power_of: {epsilon: devices -> power of the effect}, if intervals are not normal.
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
    method: str = information.BY_INFORMATION
    odds: tuple[str, ...] = ()
    power_of: Mapping[str, Callable[[int], float]] = field(default_factory=dict)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Return the names of the parameters, in the question's own units."""
        return tuple(next(iter(self.half_widths.values())))

    def power(self, epsilon: str, name: str) -> Vector:
        """Return how often the interval of an effect lies on its own side of 0, (devices,)."""
        if epsilon in self.power_of:
            return np.asarray([self.power_of[epsilon](n) for n in self.devices])
        ratio = abs(self.effects[name]) / self.half_widths[epsilon][name]
        return np.asarray(ndtr(information.HALF * (ratio - 1)))

    def devices_for(self, epsilon: str, name: str, width: float) -> float:
        """Return about how many devices make a half width at most `width`."""
        return devices_for(width, self.devices, self.half_widths[epsilon][name])

    def devices_for_power(self, epsilon: str, name: str, power: float) -> float:
        """Return about how many devices find an effect with this probability."""
        if epsilon in self.power_of:
            few, many = 2.0, MOST_DEVICES
            for _ in range(HALVINGS):
                middle = np.sqrt(few * many)
                few, many = (few, middle) if self.power_of[epsilon](int(middle)) >= power else (middle, many)
            return float(many)
        width = abs(self.effects[name]) * information.HALF / (information.HALF + float(ndtri(power)))
        return self.devices_for(epsilon, name, width)

    def lines(self, margin: float | None, power: float | None) -> list[str]:
        """Return the table in words, how many devices give a margin or a power, and the notes.

        A plan at one epsilon has a row for each parameter, other plans a row of the first for each epsilon.
        """
        alone = len(self.half_widths) == 1
        shown = self.parameters if alone else self.parameters[:1]
        rows = [(epsilon, name) for epsilon in self.half_widths for name in shown]
        labels = [visible(name if alone else f"ε = {epsilon}") for epsilon, name in rows]
        width = max(20 if self.odds else 8, *map(len, labels))
        of = "" if alone else f" of {visible(shown[0])}"
        subject = self.model if "~" in self.model else self.question
        lines = [f"{subject}: expected ±{of} (half of the 90 % interval)"]
        lines.append(f"  {'people':{width}}" + "".join(f"{n:>12,}" for n in self.devices))
        needed = []
        for label, (epsilon, name) in zip(labels, rows, strict=True):
            halves = self.half_widths[epsilon][name]
            lines.append(f"  {label:{width}}" + "".join(f"{half:>12.4g}" for half in halves))
            if name in self.odds:
                factors = "".join(f"{exp(half):>12.4g}" for half in halves)
                lines.append(f"  {'  odds ratio × or ÷':{width}}{factors}")
            if name in self.effects:
                chances = "".join(f"{chance:>12.0%}" for chance in self.power(epsilon, name))
                lines.append(f"  {'  power':{width}}{chances}")
            if margin is not None:
                needed.append((f"± {margin:g}, {label}", self.devices_for(epsilon, name, margin)))
            if power is not None and name in self.effects:
                needed.append((f"power {power:g}, {label}", self.devices_for_power(epsilon, name, power)))
        for label, devices in needed:
            how = "at most" if devices <= self.devices[0] else "about"
            lines.append(f"  {label}: {how} {rounded_up(devices):,} people")
        return [*lines, *(f"  {visible(note)}" for note in self.notes)]

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
    devices: Sequence[int] = information.DEVICES,
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
    widths: Widths
    notes: list[str] = []
    if has_formula(first):
        method = information.BY_INFORMATION
        prior: Any = RecordPrior(first) if first.ask == "record" else information.Prior(first)
        points, before = prior.truths(own_seed, given), prior.half_widths
        truths = [prior.values(point) for point in points]
        widths = {
            str(question.mechanism.epsilon): prior.widths(question, points, answers) for question in questions
        }
        if given and first.ask == "number":
            beyond = [information.share_beyond_bounds(first, truth) for truth in truths]
            notes += clipping_notes(first, float(np.mean(beyond)), given)
        rough = {
            epsilon: np.max([half / before[name] for name, half in halves.items()], axis=0) > prior.rough
            for epsilon, halves in widths.items()
        }
        notes += rough_notes(rough, chosen)
    else:
        from inference.compiling import use_compile_cache
        from inference.design.widths import SIMULATED, by_simulation, prior_half_widths

        use_compile_cache()
        method = SIMULATED
        widths, truths, found = by_simulation(questions, chosen, answers, given, own_seed, progress)
        before = prior_half_widths(first, own_seed)
        notes += found
    notes += [*prior_width_notes(widths, chosen, before), *drawn_note(first, truths)]
    return Plan(first.id, first.model.name, chosen, widths, given, tuple(notes), method=method)


def plan_difference(
    study: Study,
    question_id: str,
    parameter: str,
    values: tuple[float, float],
    devices: Sequence[int] = information.DEVICES,
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
        InputError: values that are impossible, or arguments that `plan` refuses.
    """
    if values[0] == values[1]:
        raise UsageError(
            f"--difference needs two values that differ, not {values[0]:g} twice", code="plan.equal_values"
        )
    questions = questions_to_plan(study, question_id, devices, epsilons, seed)
    first, given = questions[0], dict(truth or {})
    chosen = tuple(sorted(set(devices)))
    halves = [max(n // 2, 1) for n in chosen]
    # 1. Plan each group alone. Shares that are not stated share the remainder equally.
    rest = [f"p[{label}]" for label in first.choices] if first.ask == "choice" else []
    rest = [name for name in rest if name not in (*given, parameter)]
    groups, shares = [], []
    for value in values:
        stated = {**given, parameter: value}
        left = 1 - sum(share for name, share in stated.items() if name.startswith("p["))
        stated |= dict.fromkeys(rest, max(left, 0) / max(len(rest), 1))
        shares.append(stated)
        groups.append(plan(study, question_id, halves, epsilons, stated, seed, progress))
    # 2. Add up the variances of both groups.
    name = f"{parameter}: {values[0]:g} − {values[1]:g}"
    widths = {}
    for epsilon in groups[0].half_widths:
        each = [group.half_widths[epsilon][parameter] for group in groups]
        widths[epsilon] = {name: np.hypot(*each)[np.searchsorted(groups[0].devices, halves)]}
    notes = tuple(dict.fromkeys(f"of each group: {note}" for group in groups for note in group.notes))
    # 3. Find how often the difference is found. Near 0 the posteriors of shares are skewed.
    power_of: dict[str, Callable[[int], float]] = {}
    if has_formula(first) and first.model.name in information.SHARES:
        shares.sort(key=lambda stated: stated[parameter])
        for question in questions:
            power = information.share_power(question, parameter, shares, seed)
            power_of[str(question.mechanism.epsilon)] = partial(_power_of_halves, study, power)
    # 4. Name what is assumed.
    if len(rest) > 1:
        how = f"share the remainder equally in each group (not stated: --truth {rest[0]}=…)"
        notes = (f"assumed: {listed(rest)} {how}", *notes)
    effects, method = {name: values[0] - values[1]}, groups[0].method
    return Plan(first.id, first.model.name, chosen, widths, given, notes, effects, method, power_of=power_of)


def _power_of_halves(study: Study, power: Callable[[int], float], devices: int) -> float:
    return power(answers_of(study, max(devices // 2, 1)))


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
