"""Statistics of how well chains mix, and the narrowest interval of draws.

Rank-normalised split R-hat and effective sample sizes of bulk and tails follow Vehtari et al. 2021, Bayesian
Analysis 16(2), with Geyer's initial monotone sequence. ArviZ gives the same numbers, but loads pandas, xarray
and much of SciPy first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from inference.tail_probabilities import average_ranks

Draws = NDArray[np.float64]
# Shorter chains get NaN.
FEWEST = 4
# Draws as close as this do not vary.
SAME = 1e-15


def r_hat(draws: Draws) -> float:
    """Return R-hat of draws (chains, draws): the larger of ranks' and folded ranks'; NaN if unknown."""
    if not _known(draws) or len(draws) < 2:
        return float("nan")
    halves = _split(draws)
    return max(_plain_r_hat(_normal_scores(one)) for one in (halves, np.abs(halves - np.median(halves))))


def ess_bulk(draws: Draws) -> float:
    """Return the effective sample size of draws (chains, draws) in the bulk; NaN if unknown."""
    return _ess(_normal_scores(_split(draws))) if _known(draws) else float("nan")


def ess_tail(draws: Draws, levels: Sequence[float]) -> float:
    """Return the smallest effective sample size of the quantiles `levels`; NaN if unknown."""
    if not _known(draws):
        return float("nan")
    return min(_ess(_split(draws <= np.quantile(draws, level)).astype(float)) for level in levels)


def narrowest(draws: Draws, level: float) -> tuple[float, float]:
    """Return the ends of the narrowest interval that holds `level` of the draws: highest density."""
    ordered = np.sort(draws, axis=None)
    inside = min(int(level * len(ordered)), len(ordered) - 1)
    first = int(np.argmin(ordered[inside:] - ordered[: len(ordered) - inside]))
    return float(ordered[first]), float(ordered[first + inside])


def _known(draws: Draws) -> bool:
    return draws.shape[1] >= FEWEST and not np.isnan(draws).any()


def _split(draws: NDArray[np.generic]) -> Draws:
    """Split each chain into its first and last half, as separate chains."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: Draws) -> Draws:
    """Convert ranks among all draws to quantiles of the normal law (Blom 1958)."""
    return np.asarray(ndtri((average_ranks(draws) - 0.375) / (draws.size + 0.25)))


def _plain_r_hat(draws: Draws) -> float:
    count = draws.shape[1]
    between = count * np.var(draws.mean(axis=1), ddof=1)
    within = np.mean(np.var(draws, axis=1, ddof=1))
    return float(np.sqrt((between / within + count - 1) / count))


def _ess(draws: Draws) -> float:
    """Return the ESS of draws (chains, draws) as given, by Geyer's initial monotone sequence."""
    if np.ptp(draws) < SAME:
        return float(draws.size)
    count = draws.shape[1]
    covariance = _autocovariance(draws)
    within = covariance[0] * count / (count - 1)
    total = covariance[0] + (np.var(draws.mean(axis=1), ddof=1) if len(draws) > 1 else 0.0)
    correlation = 1 - (within - covariance) / total
    correlation[0] = 1.0
    even, odd = correlation[: count - 1 : 2], correlation[1::2]
    pairs = even[: len(odd)] + odd[: len(even)]
    # The last pairs are estimated from few draws.
    last = max(0, (count - 3) // 2)
    ended = np.flatnonzero(pairs[:last] <= 0)
    last = int(ended[0]) if len(ended) else last
    rest = even[last] if pairs[last] >= 0 else max(even[last], 0.0)
    stretch = 2 * np.minimum.accumulate(pairs[:last]).sum() - 1 + rest if last else rest - 1
    return float(draws.size / max(stretch, 1 / np.log10(draws.size)))


def _autocovariance(draws: Draws) -> Draws:
    """Return the autocovariance (draws,) at each lag, averaged over chains (chains, draws)."""
    count = draws.shape[1]
    # Padding with as many zeros makes the circular transform's correlations the plain correlations.
    padded = np.fft.rfft(draws - draws.mean(axis=1, keepdims=True), 2 * count, axis=1)
    power = (padded.real**2 + padded.imag**2).mean(axis=0)
    return np.asarray(np.fft.irfft(power, 2 * count)[:count] / count)
