"""Checks whether draws can be trusted: R-hat, effective sample sizes, divergences, with the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from inference.results.convergence import ess_bulk, ess_tail, r_hat
from inference.results.verdict import CONVERGENCE, NOTE, Finding, Verdict, findings
from inference.samplers import KEEP_MORE

MAX_R_HAT = 1.01
MIN_ESS = 400.0
TAILS = (0.05, 0.95)
# A parameter is known if at least this part of its draws are equal.
FIXED = 0.995
# Longer lists of names, such as ten thousand choices, are cut.

MOST_NAMED = 8


@dataclass(frozen=True)
class Diagnostics:
    """The findings of all checks. Chains are good if R-hat ≤ 1.01, bulk and tail ESS ≥ 400, and divergences
    do not exceed the model's allowance, which is zero for nearly all models.

    findings: in the order of the checks. r_hat, ess_bulk, ess_tail: by parameter.
    """

    findings: tuple[Finding, ...]
    divergences: int
    r_hat: Mapping[str, float]
    ess_bulk: Mapping[str, float]
    ess_tail: Mapping[str, float]

    @cached_property
    def verdict(self) -> Verdict:
        """Return the verdict that the findings add up to."""
        return Verdict.of(self.findings)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return further notes for the reader."""
        return tuple(finding.text for finding in self.findings if finding.part == NOTE)

    @property
    def ok(self) -> bool:
        """Return True if all parts of the verdict are good."""
        return self.verdict.ok

    @property
    def reasons(self) -> tuple[str, ...]:
        """Return the reasons of parts that are not good, the worst part's first."""
        return self.verdict.reasons

    def with_findings(self, more: Iterable[Finding]) -> Diagnostics:
        """Return a copy with further findings after its own."""
        return replace(self, findings=(*self.findings, *more))


@dataclass(frozen=True)
class Mixing:
    """The mixing of chains: R-hat (rank-normalised, split), bulk and tail ESS, each by parameter."""

    r_hat: Mapping[str, float]
    ess_bulk: Mapping[str, float]
    ess_tail: Mapping[str, float]

    def reasons(self, remedy: str = KEEP_MORE) -> list[str]:
        """Return a line for each of the three statistics that fails for any parameter; none if chains mix."""
        few = f"below {MIN_ESS:.0f}"
        found = [
            *_failing("R-hat", self.r_hat, lambda value: value <= MAX_R_HAT, f"above {MAX_R_HAT}"),
            *_failing("bulk ESS", self.ess_bulk, lambda value: value >= MIN_ESS, few),
            *_failing("tail ESS", self.ess_tail, lambda value: value >= MIN_ESS, few),
        ]
        return [f"{line}: {remedy}" for line in found]


def mixing(parameters: Mapping[str, NDArray[np.float64]]) -> Mixing:
    """Measure the mixing of draws (chains, draws) for each parameter."""
    return Mixing(
        {name: _if_moving(r_hat, draws) for name, draws in parameters.items()},
        {name: _if_moving(ess_bulk, draws) for name, draws in parameters.items()},
        {name: _if_moving(ess_tail, draws, TAILS) for name, draws in parameters.items()},
    )


def diagnose(
    parameters: Mapping[str, NDArray[np.float64]],
    diverging: NDArray[np.bool_],
    more: Iterable[Finding] = (),
    *,
    reasons: Sequence[str] = (),
    found: Mixing | None = None,
    remedy: str = KEEP_MORE,
    chained: bool = True,
    may_diverge: float = 0.0,
) -> Diagnostics:
    """Judge draws of shape (chains, draws) for each parameter.

    more: findings of other checks. reasons: the method's own reasons not to trust its draws. found: the
    draws' mixing, if already measured. remedy: advice if they mix badly. chained: True if draws come from
    Markov chains, so that mixing decides; otherwise they need only be finite. may_diverge: tolerated share of
    divergent transitions.
    """
    found = found or mixing(parameters)
    # Parameters that a method takes as known do not vary; a longer run would not change that.
    moving = {name: draws for name, draws in parameters.items() if not is_fixed(draws)}
    if chained:
        measured = found if len(moving) == len(parameters) else mixing(moving)
        reasons = [*reasons, *measured.reasons(remedy)]
    else:
        reasons = [*reasons, *_not_finite(parameters)]
    divergences = int(diverging.sum())
    if divergences > may_diverge * diverging.size:
        reasons.append(f"{divergences} transitions diverged: state a narrower prior, or try another seed")
    every = (*findings(CONVERGENCE, reasons), *more)
    return Diagnostics(every, divergences, found.r_hat, found.ess_bulk, found.ess_tail)


def _if_moving(statistic: Callable[..., float], draws: NDArray[np.float64], *more: object) -> float:
    return float("nan") if is_fixed(draws) else statistic(draws, *more)


def _failing(what: str, values: Mapping[str, float], good: Callable[[float], bool], bad: str) -> list[str]:
    """Return one line if a diagnostic fails; NaN fails."""
    failing = [name for name, value in values.items() if not good(value)]
    if not failing:
        return []
    return [f"{what} of {listed(failing)} is {bad}"]


def _not_finite(parameters: Mapping[str, NDArray[np.float64]]) -> list[str]:
    odd = [name for name, draws in parameters.items() if not np.isfinite(draws).all()]
    return [f"draws of {listed(odd)} are not finite: use --method nuts"] if odd else []


def is_fixed(draws: NDArray[np.float64]) -> bool:
    """Return True if all draws, or all but a few of very many, are equal, so that mixing is meaningless."""
    return bool(np.mean(draws == np.median(draws)) >= FIXED)


def listed(names: Sequence[str]) -> str:
    """Join names with commas; from a long list, take the first names and count the rest."""
    if len(names) <= MOST_NAMED:
        return ", ".join(names)
    return f"{', '.join(names[: MOST_NAMED - 1])} and {len(names) - MOST_NAMED + 1:,} more"
