"""Check that reports are possible under their noise, whatever people answered.

The expected share of each kind of report is between its least and greatest chance in the channel's rows.
Reports farther outside than by chance show that people did not follow the dice, or that the design is wrong.
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
FEWEST = 30
MOST_LEVELS = 60


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
    for part in range(len(channel.exclusive)):
        own = channel.part[codes] == part
        n = float(counts[own].sum())
        if n < FEWEST:
            continue
        yield _beyond(counts[own] @ channel.shows[codes[own]], n, channel.corners(part))


def _beyond(seen: Values, n: float, corners: Values) -> float:
    """Return the p-value of kinds with separate chances: the smallest binomial tail, times their number."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    tails = np.minimum(stats.binom.cdf(seen, n, low), stats.binom.sf(seen - 1, n, high))
    return float(min(1.0, len(seen) * tails.min()))
