"""Importance weights of an approximation's draws: whether they can be trusted, and resampling by them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from arviz_stats.base.array import array_stats
from numpy.typing import NDArray

from inference.results.diagnostics import MIN_ESS

Vector = NDArray[np.float64]

MAX_PARETO_K = 0.7
# Log ratios this near to one another are those of the posterior itself.
SAME_RATIO = 1e-9


@dataclass(frozen=True)
class ImportanceWeights:
    """Smoothed importance weights (draws,) that sum to one, and the Pareto shape of their tail."""

    values: Vector
    pareto_k: float

    @property
    def ess(self) -> float:
        """The effective sample size: how many equally weighted draws are as precise."""
        return float(1 / np.sum(self.values**2))

    @property
    def good(self) -> bool:
        return self.pareto_k <= MAX_PARETO_K and self.ess >= MIN_ESS

    def reasons(self) -> tuple[str, ...]:
        if self.good:
            return ()
        return (
            f"the Gaussian approximation is poor (importance weights: Pareto k {self.pareto_k:.2f}, may be "
            f"{MAX_PARETO_K}; effective draws {self.ess:.0f}, should be {MIN_ESS:.0f}): use --method nuts",
        )


def weigh(log_ratios: Vector) -> ImportanceWeights:
    """Pareto-smoothed weights of log importance ratios (draws,); not good where one is not finite."""
    equal = np.full(len(log_ratios), 1 / len(log_ratios))
    if not np.isfinite(log_ratios).all():
        return ImportanceWeights(equal, float("inf"))
    if np.ptp(log_ratios) < SAME_RATIO:
        return ImportanceWeights(equal, 0.0)
    # ArviZ takes the ratios as it has them in leave-one-out: with the other sign.
    smoothed, k = array_stats.psislw(-log_ratios)
    weights = np.exp(smoothed - np.max(smoothed))
    return ImportanceWeights(weights / weights.sum(), float(k))


def resample(weights: ImportanceWeights, seed: int, multiple: int) -> NDArray[np.intp]:
    """Systematic resampling, shuffled: as many as the effective sample size, a multiple of `multiple`."""
    random = np.random.default_rng([seed, 1])
    count = int(weights.ess) // multiple * multiple
    places = (np.arange(count) + random.random()) / count
    rows = np.minimum(np.searchsorted(np.cumsum(weights.values), places), len(weights.values) - 1)
    return random.permutation(rows)
