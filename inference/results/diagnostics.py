"""Whether a set of draws can be trusted: R-hat, effective sample sizes, divergences, with the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inference.results.convergence import ess_bulk, ess_tail, r_hat
from inference.results.verdict import BAD, NOT_CHECKED, PARTIAL, UNTOUCHED, Part, Verdict
from inference.samplers import KEEP_MORE

MAX_R_HAT = 1.01
MIN_ESS = 400.0
TAILS = (0.05, 0.95)
# What so large a part of the draws agrees on is known.
FIXED = 0.995
# Of ten thousand choices a reader needs no list.

MOST_NAMED = 8


@dataclass(frozen=True)
class Diagnostics:
    """verdict: chains (good: R-hat ≤ 1.01, bulk and tail ESS ≥ 400, no more
    diverged than the model allows, which for nearly all is nothing), model, knowledge.

    notes: what a reader should know besides. r_hat, ess_bulk, ess_tail: by parameter.
    """

    verdict: Verdict
    notes: tuple[str, ...]
    divergences: int
    r_hat: Mapping[str, float]
    ess_bulk: Mapping[str, float]
    ess_tail: Mapping[str, float]

    @property
    def ok(self) -> bool:
        """Whether all parts of the verdict are good."""
        return self.verdict.ok

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why not, the worst part's first."""
        return self.verdict.reasons

    def with_model(self, reasons: tuple[str, ...], notes: tuple[str, ...] = ()) -> Diagnostics:
        """The same, and the model is bad for these reasons too, where there are any; and more notes."""
        verdict = replace(self.verdict, model=self.verdict.model.with_reasons(reasons))
        return replace(self, verdict=verdict, notes=(*self.notes, *notes))

    def with_knowledge(self, reasons: tuple[str, ...]) -> Diagnostics:
        """The same, and not all is known from the reports for these reasons too, where there are any."""
        own = self.verdict.knowledge
        if not reasons:
            return self
        part = Part(BAD if own.state == BAD else PARTIAL, (*own.reasons, *reasons))
        return replace(self, verdict=replace(self.verdict, knowledge=part))

    def unchecked(self, why: str) -> Diagnostics:
        """The same, and nothing was checked of the model, unless it is bad already."""
        own = self.verdict.model
        model = own if own.state == BAD else Part(NOT_CHECKED, (*own.reasons, why))
        return replace(self, verdict=replace(self.verdict, model=model))


@dataclass(frozen=True)
class Mixing:
    """How well chains mix: R-hat (rank-normalised, split), bulk and tail ESS, each by parameter."""

    r_hat: Mapping[str, float]
    ess_bulk: Mapping[str, float]
    ess_tail: Mapping[str, float]

    def reasons(self, remedy: str = KEEP_MORE) -> list[str]:
        """One line for each of the three that is not good for all parameters; none when the chains mix."""
        few = f"below {MIN_ESS:.0f}"
        found = [
            *_failing("R-hat", self.r_hat, lambda value: value <= MAX_R_HAT, f"above {MAX_R_HAT}"),
            *_failing("bulk ESS", self.ess_bulk, lambda value: value >= MIN_ESS, few),
            *_failing("tail ESS", self.ess_tail, lambda value: value >= MIN_ESS, few),
        ]
        return [f"{line}: {remedy}" for line in found]


def mixing(parameters: Mapping[str, NDArray[np.float64]]) -> Mixing:
    """Measure draws of shape (chains, draws) for each parameter."""
    return Mixing(
        {name: _if_moving(r_hat, draws) for name, draws in parameters.items()},
        {name: _if_moving(ess_bulk, draws) for name, draws in parameters.items()},
        {name: _if_moving(ess_tail, draws, TAILS) for name, draws in parameters.items()},
    )


def diagnose(
    parameters: Mapping[str, NDArray[np.float64]],
    diverging: NDArray[np.bool_],
    n: int = 1,
    notes: tuple[str, ...] = (),
    reasons: Sequence[str] = (),
    found: Mixing | None = None,
    remedy: str = KEEP_MORE,
    chained: bool = True,
    model: Part = UNTOUCHED,
    knowledge: Part = UNTOUCHED,
    may_diverge: float = 0.0,
) -> Diagnostics:
    """Judge draws of shape (chains, draws) for each parameter, from n reports.

    notes are what a reader should know besides; reasons those for which the method itself does not trust its
    draws. found: how they mix, where that was measured already; remedy: what to try where they do not.
    chained: whether draws follow on one another, so that mixing decides; else they need only be finite.
    may_diverge: the share of transitions that may. model, knowledge: those parts of the verdict.
    """
    found = found or mixing(parameters)
    # What a method takes as known does not vary, and no longer run would change that.
    moving = {name: draws for name, draws in parameters.items() if not is_fixed(draws)}
    if chained:
        measured = found if len(moving) == len(parameters) else mixing(moving)
        reasons = [*reasons, *measured.reasons(remedy)]
    else:
        reasons = [*reasons, *_not_finite(parameters)]
    divergences = int(diverging.sum())
    if divergences > may_diverge * diverging.size:
        reasons.append(f"{divergences} transitions diverged: state a narrower prior, or try another seed")
    if n == 0:
        knowledge = Part(BAD, ("there are no reports: this is the prior",))
    verdict = Verdict(Part.of(tuple(reasons)), model, knowledge)
    return Diagnostics(verdict, notes, divergences, found.r_hat, found.ess_bulk, found.ess_tail)


def _if_moving(statistic: Callable[..., float], draws: NDArray[np.float64], *more: object) -> float:
    return float("nan") if is_fixed(draws) else statistic(draws, *more)


def _failing(what: str, values: Mapping[str, float], good: Callable[[float], bool], bad: str) -> list[str]:
    """One line for a diagnostic that fails; NaN fails."""
    failing = [name for name, value in values.items() if not good(value)]
    if not failing:
        return []
    return [f"{what} of {listed(failing)} is {bad}"]


def _not_finite(parameters: Mapping[str, NDArray[np.float64]]) -> list[str]:
    odd = [name for name, draws in parameters.items() if not np.isfinite(draws).all()]
    return [f"draws of {listed(odd)} are not finite: use --method nuts"] if odd else []


def is_fixed(draws: NDArray[np.float64]) -> bool:
    """Whether all draws, or all but a few of very many, are one number: nothing is left to mix."""
    return bool(np.mean(draws == np.median(draws)) >= FIXED)


def listed(names: Sequence[str]) -> str:
    """The names, or of very many the first and how many more."""
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1:,} more"
