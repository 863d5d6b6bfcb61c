"""Checks whether draws can be trusted: divergences, energies, R-hat and effective sample sizes.

Rank-normalised split R-hat and effective sample sizes of bulk and tails follow Vehtari et al. 2021, Bayesian
Analysis 16(2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from numpyro.diagnostics import effective_sample_size, gelman_rubin
from scipy.special import ndtri

from inference.results.verdict import CONVERGENCE, Finding, findings, listed
from inference.samplers import KEEP_MORE
from inference.tail_probabilities import average_ranks

Draws = NDArray[np.float64]
MAX_R_HAT = 1.01
MIN_ESS = 400.0
TAILS = (0.05, 0.95)
# Shorter chains have no statistics.
FEWEST = 4
# A parameter is known if at least this part of its draws are equal.
FIXED = 0.995
# Chains with a smaller energy fraction of missing information cross a posterior too slowly.
LEAST_E_BFMI = 0.2
# R-hat of sites with more entries is measured by parameter alone.
MOST_ENTRIES = 1000


def r_hat(draws: Draws) -> float:
    """Return R-hat of draws (chains, draws): the larger of ranks' and folded ranks'; NaN if unknown."""
    if len(draws) < 2:
        return float("nan")

    def larger(halves: Draws) -> float:
        folded = np.abs(halves - np.median(halves))
        return max(float(gelman_rubin(_normal_scores(values))) for values in (halves, folded))

    return _of_halves(draws, larger)


def ess_bulk(draws: Draws) -> float:
    """Return the effective sample size of draws (chains, draws) in the bulk; NaN if unknown."""
    return _of_halves(draws, lambda halves: _ess(_normal_scores(halves)))


def ess_tail(draws: Draws) -> float:
    """Return the smaller effective sample size of the quantiles TAILS; NaN if unknown."""

    def smaller(halves: Draws) -> float:
        below = [(halves <= np.quantile(draws, level)).astype(float) for level in TAILS]
        # Draws that are all below a quantile, as of few values, tell nothing against their chains.
        varying = [_ess(flags) for flags in below if np.ptp(flags)]
        return min([*varying, float(draws.size)])

    return _of_halves(draws, smaller)


def _of_halves(draws: Draws, statistic: Callable[[Draws], float]) -> float:
    """Return a statistic of the chains' first and last halves, as separate chains; NaN if it is unknown."""
    if is_fixed(draws) or draws.shape[1] < FEWEST or np.isnan(draws).any():
        return float("nan")
    half = draws.shape[1] // 2
    return statistic(np.concatenate([draws[:, :half], draws[:, -half:]]))


def _ess(draws: Draws) -> float:
    """Return the effective sample size of draws as given; at most n log₁₀ n, if they alternate."""
    size, most = float(effective_sample_size(draws)), draws.size * float(np.log10(draws.size))
    return most if size <= 0 or size > most else size


def _normal_scores(draws: Draws) -> Draws:
    """Convert ranks among all draws to quantiles of the normal law (Blom 1958)."""
    return np.asarray(ndtri((average_ranks(draws) - 0.375) / (draws.size + 0.25)))


def e_bfmi(energy: Draws) -> float:
    """Return the smallest of all chains' E-BFMI (Betancourt 2016, arXiv:1604.00695)."""
    steps = np.mean(np.diff(energy, axis=1) ** 2, axis=1)
    return float(np.min(steps / np.var(energy, axis=1)))


def is_fixed(draws: NDArray[np.float64]) -> bool:
    """Return True if all draws, or all but a few of very many, are equal, so that mixing is meaningless."""
    return bool(np.mean(draws == np.median(draws)) >= FIXED)


@dataclass(frozen=True)
class Mixing:
    """The mixing of chains, by parameter. Each statistic of a parameter that does not vary is NaN."""

    r_hat: dict[str, float] = field(default_factory=dict)
    ess_bulk: dict[str, float] = field(default_factory=dict)
    ess_tail: dict[str, float] = field(default_factory=dict)

    def with_parameters(self, parameters: Mapping[str, Draws]) -> Mixing:
        """Return the mixing with that of further parameters, draws (chains, draws) of each."""
        mixed = Mixing(dict(self.r_hat), dict(self.ess_bulk), dict(self.ess_tail))
        for name, draws in parameters.items():
            if name not in mixed.r_hat:
                mixed.r_hat[name] = r_hat(draws)
                mixed.ess_bulk[name], mixed.ess_tail[name] = ess_bulk(draws), ess_tail(draws)
        return mixed

    def findings(self, names: Iterable[str], remedy: str = KEEP_MORE) -> Iterator[Finding]:
        """Yield a finding for each of the three statistics that fails, on the failing parameters of these."""
        names, few = [*names], f"below {MIN_ESS:.0f}"
        # `not <=` also catches NaN.
        failing = {
            f"R-hat of {{}} is above {MAX_R_HAT}": [n for n in names if not self.r_hat[n] <= MAX_R_HAT],
            f"bulk ESS of {{}} is {few}": [n for n in names if not self.ess_bulk[n] >= MIN_ESS],
            f"tail ESS of {{}} is {few}": [n for n in names if not self.ess_tail[n] >= MIN_ESS],
        }
        for text, parameters in failing.items():
            if parameters:
                text = f"{text.format(listed(parameters))}: {remedy}"
                yield Finding(CONVERGENCE, text, quantities=frozenset(parameters))


def mixing(parameters: Mapping[str, Draws]) -> Mixing:
    """Measure the mixing of draws (chains, draws) of each parameter."""
    return Mixing().with_parameters(parameters)


def mixing_findings(
    parameters: Mapping[str, Draws],
    sites: Mapping[str, Draws],
    log_density: Draws | None,
    known: Mixing,
    remedy: str = KEEP_MORE,
) -> tuple[Finding, ...]:
    """Return what R-hat and ESS say against draws of Markov chains.

    R-hat of a sampled site, or of the log density, counts for all quantities. Other statistics count for the
    parameter itself. known: the parameters' mixing.
    """
    sampled = dict(sites) if log_density is None else {**sites, "log density": log_density}
    apart = [name for name, draws in sampled.items() if not _is_mixed(draws)]
    if apart:
        text = f"chains disagree: R-hat of {listed(apart)} is above {MAX_R_HAT}: {remedy}"
        return (Finding(CONVERGENCE, text),)
    # A method takes a parameter that does not vary as known, and no longer run would move it.
    return tuple(known.findings((n for n, draws in parameters.items() if not is_fixed(draws)), remedy))


def _is_mixed(draws: Draws) -> bool:
    """Return True if R-hat of every entry of a site (chains, draws, …) is good."""
    entries = draws.reshape(*draws.shape[:2], -1)
    # The shares of very many choices are parameters, which are measured anyway.
    if entries.shape[2] > MOST_ENTRIES:
        return True
    return all(is_fixed(column) or r_hat(column) <= MAX_R_HAT for column in np.moveaxis(entries, 2, 0))


def diagnose(
    parameters: Mapping[str, Draws],
    diverging: NDArray[np.bool_],
    more: Iterable[Finding] = (),
    *,
    reasons: Sequence[str] = (),
    known: Mixing | None = None,
    remedy: str = KEEP_MORE,
    chained: bool = True,
    may_diverge: float = 0.0,
    sites: Mapping[str, Draws] | None = None,
    log_density: Draws | None = None,
    energy: Draws | None = None,
) -> tuple[tuple[Finding, ...], Mixing]:
    """Judge draws of shape (chains, draws) for each parameter.

    Args:
        parameters: their draws.
        diverging: of shape (chains, draws).
        more: findings of other checks.
        reasons: the method's own reasons not to trust its draws.
        known: the mixing, if already measured; not of means that a law implies.
        remedy: advice if the draws mix badly.
        chained: True if draws come from Markov chains, so that mixing decides; otherwise they need only be
            finite.
        may_diverge: the tolerated share of divergent transitions.
        sites: draws (chains, draws, …) of what was sampled.
        log_density: of the posterior, (chains, draws), if known.
        energy: of the transitions, (chains, draws), if known.

    Returns:
        The findings of all checks, with `more` at the end, and the mixing of each parameter.
    """
    mixed = (known or Mixing()).with_parameters(parameters)
    against = [*findings(CONVERGENCE, reasons)]
    if chained:
        against += mixing_findings(parameters, sites or {}, log_density, mixed, remedy)
    elif odd := [name for name, draws in parameters.items() if not np.isfinite(draws).all()]:
        against.append(Finding(CONVERGENCE, f"draws of {listed(odd)} are not finite: use --method nuts"))
    divergences = int(diverging.sum())
    if divergences > may_diverge * diverging.size:
        text = f"{divergences} transitions diverged: state a narrower prior, or choose another model"
        against.append(Finding(CONVERGENCE, text))
    if energy is not None and not e_bfmi(energy) >= LEAST_E_BFMI:
        text = f"E-BFMI is below {LEAST_E_BFMI}: chains explore the posterior too slowly; {remedy}"
        against.append(Finding(CONVERGENCE, text))
    return (*against, *more), mixed
