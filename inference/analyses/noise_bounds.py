"""Check that reports are possible under their noise, whatever people answered.

The expected shares of reports are in the convex hull of the channel's rows. Reports farther outside than by
chance show that people did not follow the dice, or that the design is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from inference.analyses.cells import Cells
from inference.analyses.table import Private, Values
from inference.results.verdict import FIT, Finding, findings

Mask = NDArray[np.bool_]

# The highest rate at which valid reports of an analysis are called impossible.
FALSE_ALARM = 1e-4
# With fewer reports the likelihood ratio is too far from its asymptotic law.
FEWEST = 30
MOST_LEVELS = 60
# Up to this many kinds the hull itself is used, otherwise the range of each kind's share.
MOST_KINDS, STEPS = 100, 300


def impossible(columns: Sequence[Private], cells: Cells) -> tuple[Finding, ...]:
    """Return a finding for each private column whose reports are impossible: where, and their probability."""
    found = []
    # A number's reports have no shares of kinds. They are checked against the mechanism when read.
    for column in (one for one in columns if one.number is None):
        tested = [(where, p) for where, mask in _groups(cells.frame) for p in _p_values(column, cells, mask)]
        if not tested:
            continue
        worst = min(tested, key=lambda one: one[1])
        if worst[1] * len(tested) * len(columns) < FALSE_ALARM:
            found.append(
                f"reports of {column.name}{worst[0]} are implausible under the noise: too many or few of a "
                f"kind (probability {worst[1]:.1g}): people did not follow the noise, or it is wrong"
            )
    return findings(FIT, found)


def _groups(frame: pd.DataFrame) -> Iterator[tuple[str, Mask]]:
    """Yield the cells of all people, and of each level of every public column with few levels."""
    yield "", np.ones(len(frame), bool)
    for column in frame.columns:
        levels = frame[column].unique()
        if 2 <= len(levels) <= MOST_LEVELS:
            for level in levels:
                yield f" where {column} = {level}", (frame[column] == level).to_numpy()


def _p_values(column: Private, cells: Cells, group: Mask) -> Iterator[float]:
    """Yield, for each part of the design, an upper bound of the probability of reports as far outside."""
    channel, codes = column.choices, cells.reports[column.name]
    inside = group[cells.cell] & (codes >= 0)
    codes, counts = codes[inside], cells.counts[inside].astype(np.float64)
    for part, exclusive in enumerate(channel.exclusive):
        own = channel.part[codes] == part
        n = float(counts[own].sum())
        if n < FEWEST:
            continue
        seen, corners = counts[own] @ channel.shows[codes[own]], channel.corners(part)
        if exclusive and 2 < len(seen) <= MOST_KINDS:
            yield _outside(seen, corners)
        else:
            yield _beyond(seen, n, corners)


def _outside(seen: Values, corners: Values) -> float:
    """Return the likelihood-ratio p-value against the hull, for kinds of which each report is exactly one.

    EM approximates the hull's best point. The gain that it may still miss is subtracted, so the p-value is
    never too small.
    """
    n = seen.sum()
    weights = np.full(len(corners), 1 / len(corners))
    for _ in range(STEPS):
        chances = np.maximum(weights @ corners, 1e-300)
        gains = corners @ (seen / chances) / n
        weights = weights * gains
    chances = np.maximum(weights @ corners, 1e-300)
    gains = corners @ (seen / chances) / n
    some = seen > 0
    ratio = float(np.sum(seen[some] * np.log(seen[some] / n / chances[some])))
    ratio -= n * float(np.log(max(gains.max(), 1.0)))
    return float(stats.chi2.sf(max(2 * ratio, 0.0), len(seen) - 1))


def _beyond(seen: Values, n: float, corners: Values) -> float:
    """Return the p-value of kinds with separate chances: the smallest binomial tail, times their number."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    tails = np.minimum(stats.binom.cdf(seen, n, low), stats.binom.sf(seen - 1, n, high))
    return float(min(1.0, len(seen) * tails.min()))
