"""Simultaneous bands for the distribution function of ranks (Säilynoja, Bürkner, Vehtari 2022).

If draws and truth are exchangeable, the rank of the truth among L draws is uniform on 0 … L. Of N ranks,
the number that are at most r is binomial at each r; the band holds at all r together with the stated
probability. That probability is exact: counts at r grow by binomial steps, so it follows by recursion.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
BISECTIONS = 40


@dataclass(frozen=True)
class Band:
    """at (L,): probabilities (r + 1)/(L + 1). low, high (L,): least and largest counts of ranks ≤ r."""

    at: Vector
    low: NDArray[np.int64]
    high: NDArray[np.int64]


def simultaneous_band(ranks: int, draws: int, false_alarm: float) -> Band:
    """The band that uniform ranks leave with a probability of at most `false_alarm`."""
    lowest, highest = np.log(false_alarm / (10 * draws)), np.log(false_alarm)
    for _ in range(BISECTIONS):
        middle = (lowest + highest) / 2
        if inside_probability(_pointwise(ranks, draws, np.exp(middle)), ranks) >= 1 - false_alarm:
            lowest = middle
        else:
            highest = middle
    return _pointwise(ranks, draws, np.exp(lowest))


def _pointwise(ranks: int, draws: int, level: float) -> Band:
    from scipy.stats import binom

    at = np.arange(1, draws + 1) / (draws + 1)
    low, high = (binom.ppf(tail, ranks, at).astype(np.int64) for tail in (level / 2, 1 - level / 2))
    return Band(at, np.maximum(low, 0), high)


def inside_probability(band: Band, ranks: int) -> float:
    """The probability that the counts of `ranks` uniform ranks stay inside a band everywhere."""
    from scipy.stats import binom

    counts = np.arange(ranks + 1)
    reached = np.zeros(ranks + 1)
    reached[0] = 1.0
    before = 0.0
    for at, low, high in zip(band.at, band.low, band.high, strict=True):
        share = (at - before) / (1 - before)
        alive = np.flatnonzero(reached)
        steps = binom.pmf(counts[None, :] - alive[:, None], ranks - alive[:, None], share)
        reached = reached[alive] @ steps
        reached[:low] = 0.0
        reached[high + 1 :] = 0.0
        before = at
    return float(reached.sum())


def leaves(band: Band, ranks: NDArray[np.int64]) -> bool:
    """Return True if the distribution function of ranks (N,) leaves the band."""
    # The ranks that are at most r, for r = 0 … draws − 1.
    counts = np.cumsum(np.bincount(ranks, minlength=len(band.at) + 1))[:-1]
    return bool(np.any((counts < band.low) | (counts > band.high)))
