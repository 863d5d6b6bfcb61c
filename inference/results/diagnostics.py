"""Checks whether draws can be trusted: divergences, energies, R-hat and effective sample sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
# Chains with a smaller energy fraction of missing information cross a posterior too slowly.
LEAST_E_BFMI = 0.2
# R-hat of sites with more entries is measured by parameter alone.
MOST_ENTRIES = 1000


@dataclass(frozen=True)
class Diagnostics:
    """The findings of all checks.

    findings: in the order of the checks. r_hat, ess_bulk, ess_tail: by parameter.
    """

    findings: tuple[Finding, ...]
    divergences: int
    r_hat: Mapping[str, float]
    ess_bulk: Mapping[str, float]
    ess_tail: Mapping[str, float]

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on all quantities together."""
        return Verdict.of_findings(self.findings)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return further notes for the reader."""
        return tuple(finding.text for finding in self.findings if finding.part == NOTE)

    def with_findings(self, more: Iterable[Finding]) -> Diagnostics:
        """Return a copy with further findings after its own."""
        return replace(self, findings=(*self.findings, *more))


Draws = NDArray[np.float64]


@dataclass(frozen=True)
class Mixing:
    """The mixing of chains: R-hat (rank-normalised, split), bulk and tail ESS, each by parameter."""

    r_hat: Mapping[str, float]
    ess_bulk: Mapping[str, float]
    ess_tail: Mapping[str, float]

    def joined(self, other: Mixing) -> Mixing:
        """Return both, of other parameters each."""
        return Mixing(
            {**self.r_hat, **other.r_hat},
            {**self.ess_bulk, **other.ess_bulk},
            {**self.ess_tail, **other.ess_tail},
        )

    def findings(self, remedy: str = KEEP_MORE) -> Iterator[Finding]:
        """Yield a finding for each of the three statistics that fails, on the failing parameters."""
        few = f"below {MIN_ESS:.0f}"
        for what, values, limit in (
            ("R-hat", self.r_hat, f"above {MAX_R_HAT}"),
            ("bulk ESS", self.ess_bulk, few),
            ("tail ESS", self.ess_tail, few),
        ):
            # `not <=` also catches NaN.
            failing = [
                name
                for name, value in values.items()
                if not (value <= MAX_R_HAT if what == "R-hat" else value >= MIN_ESS)
            ]
            if failing:
                text = f"{what} of {listed(failing)} is {limit}: {remedy}"
                yield Finding(CONVERGENCE, text, quantities=frozenset(failing))


def mixing(parameters: Mapping[str, Draws]) -> Mixing:
    """Measure the mixing of draws (chains, draws) for each parameter."""
    return Mixing(
        {name: _if_moving(r_hat, draws) for name, draws in parameters.items()},
        {name: _if_moving(ess_bulk, draws) for name, draws in parameters.items()},
        {name: _if_moving(ess_tail, draws, TAILS) for name, draws in parameters.items()},
    )


def moving(parameters: Mapping[str, Draws]) -> dict[str, Draws]:
    """Return the parameters that vary. A method takes others as known, and no longer run would move them."""
    return {name: draws for name, draws in parameters.items() if not is_fixed(draws)}


def mixing_findings(
    parameters: Mapping[str, Draws],
    sites: Mapping[str, Draws],
    log_density: Draws | None,
    remedy: str = KEEP_MORE,
    known: Mixing | None = None,
) -> tuple[Finding, ...]:
    """Return what R-hat and ESS say against draws of Markov chains.

    R-hat of a sampled site, or of the log density, counts for all quantities. Other statistics count for the
    parameter itself. known: the parameters' mixing, if already measured.
    """
    sampled = dict(sites) if log_density is None else {**sites, "log density": log_density}
    apart = [name for name, draws in sampled.items() if not _is_mixed(draws)]
    if apart:
        return findings(
            CONVERGENCE, [f"chains disagree: R-hat of {listed(apart)} is above {MAX_R_HAT}: {remedy}"]
        )
    varying = moving(parameters)
    found = known if known is not None and len(varying) == len(parameters) else mixing(varying)
    return tuple(found.findings(remedy))


def _is_mixed(draws: Draws) -> bool:
    """Return True if R-hat of every entry of a site (chains, draws, …) is good."""
    entries = draws.reshape(*draws.shape[:2], -1)
    # The shares of very many choices are parameters, which are measured anyway.
    if entries.shape[2] > MOST_ENTRIES:
        return True
    columns = (entries[..., place] for place in range(entries.shape[2]))
    return all(is_fixed(column) or r_hat(column) <= MAX_R_HAT for column in columns)


def diagnose(
    parameters: Mapping[str, Draws],
    diverging: NDArray[np.bool_],
    more: Iterable[Finding] = (),
    *,
    reasons: Sequence[str] = (),
    found: Mixing | None = None,
    remedy: str = KEEP_MORE,
    chained: bool = True,
    may_diverge: float = 0.0,
    sites: Mapping[str, Draws] | None = None,
    log_density: Draws | None = None,
    energy: Draws | None = None,
) -> Diagnostics:
    """Judge draws of shape (chains, draws) for each parameter.

    more: findings of other checks. reasons: the method's own reasons not to trust its draws. found: the
    draws' mixing, if already measured. remedy: advice if they mix badly. chained: True if draws come from
    Markov chains, so that mixing decides; otherwise they need only be finite. may_diverge: tolerated share of
    divergent transitions. sites: draws (chains, draws, …) of what was sampled, log_density: of the posterior,
    energy: of the transitions, each (chains, draws), if known.
    """
    # Means that a law implies are no parameters of the model, and were not measured with them.
    found = found or Mixing({}, {}, {})
    found = found.joined(mixing({name: each for name, each in parameters.items() if name not in found.r_hat}))
    against = [*findings(CONVERGENCE, reasons)]
    if chained:
        against += mixing_findings(parameters, sites or {}, log_density, remedy, found)
    else:
        against += findings(CONVERGENCE, _not_finite(parameters))
    divergences = int(diverging.sum())
    if divergences > may_diverge * diverging.size:
        text = f"{divergences} transitions diverged: state a narrower prior, or choose another model"
        against.append(Finding(CONVERGENCE, text))
    if energy is not None and not e_bfmi(energy) >= LEAST_E_BFMI:
        text = f"E-BFMI is below {LEAST_E_BFMI}: chains explore the posterior too slowly; {remedy}"
        against.append(Finding(CONVERGENCE, text))
    return Diagnostics((*against, *more), divergences, found.r_hat, found.ess_bulk, found.ess_tail)


def e_bfmi(energy: Draws) -> float:
    """Return the smallest of all chains' E-BFMI (Betancourt 2016, arXiv:1604.00695)."""
    steps = np.mean(np.diff(energy, axis=1) ** 2, axis=1)
    return float(np.min(steps / np.var(energy, axis=1)))


def _if_moving(statistic: Callable[..., float], draws: NDArray[np.float64], *more: object) -> float:
    return float("nan") if is_fixed(draws) else statistic(draws, *more)


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
