"""Whether reports are such as their noise can give, whatever people answered.

The shares of reports lie in the convex hull of the channel's rows. What lies outside farther than chance
carries it shows that people did not follow the dice, or that the design is another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from inference.analyses.cells import Cells
from inference.analyses.table import Private, Values

Mask = NDArray[np.bool_]

# Sound reports of an analysis are called impossible so often at most.
FALSE_ALARM = 1e-4
# With fewer reports the likelihood ratio is not near enough to its law.
FEWEST = 30
MOST_LEVELS = 60
# Kinds up to which the hull itself is taken, and not the range of each kind's share.
MOST_KINDS, STEPS = 100, 300


def impossible(columns: Sequence[Private], cells: Cells) -> tuple[str, ...]:
    """Of each private column whose reports the noise cannot give: where, and how improbable that is."""
    found = []
    # A number's reports are no kinds with a share each: they are held against the mechanism as they are read.
    for column in (one for one in columns if one.channel is None):
        tested = [(where, p) for where, mask in _groups(cells.frame) for p in _p_values(column, cells, mask)]
        if not tested:
            continue
        worst = min(tested, key=lambda one: one[1])
        if worst[1] * len(tested) * len(columns) < FALSE_ALARM:
            found.append(
                f"no answers give such reports of {column.name}{worst[0]}: too many or too few of one "
                f"kind for the noise (probability {worst[1]:.1g}): people did not follow it, or it is another"
            )
    return tuple(found)


def _groups(frame: pd.DataFrame) -> Iterator[tuple[str, Mask]]:
    """Cells of all people, and of each level of a public column with few."""
    yield "", np.ones(len(frame), bool)
    for column in frame.columns:
        levels = frame[column].unique()
        if 2 <= len(levels) <= MOST_LEVELS:
            for level in levels:
                yield f" where {column} = {level}", (frame[column] == level).to_numpy()


def _p_values(column: Private, cells: Cells, group: Mask) -> Iterator[float]:
    """One for each part of the design: at least the probability of reports as far outside."""
    looks, codes = column.looks, cells.reports[column.name]
    if looks is None:
        return
    inside = group[cells.cell] & (codes < len(looks.shows))
    codes, counts = codes[inside], cells.counts[inside].astype(np.float64)
    for part, rows in enumerate(looks.chances):
        own = looks.part[codes] == part
        n = float(counts[own].sum())
        if n < FEWEST:
            continue
        seen = counts[own] @ looks.shows[codes[own]]
        moved = [slopes[part] for slopes in looks.unknown.values() if slopes[part].any()]
        corners = np.vstack([rows, *(rows + slopes for slopes in moved)])
        if looks.exclusive_parts[part] and 2 < len(seen) <= MOST_KINDS:
            yield _outside(seen, corners)
        else:
            yield _beyond(seen, n, corners)


def _outside(seen: Values, corners: Values) -> float:
    """Of counts of kinds of which each report is one, by the likelihood ratio against the hull.

    The hull's best point is come near to by EM; what it may still gain is taken off, so that the p-value is
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
    """Of kinds that each have a chance of their own: the smallest of their binomial tails, times how many."""
    low, high = corners.min(axis=0), corners.max(axis=0)
    tails = np.minimum(stats.binom.cdf(seen, n, low), stats.binom.sf(seen - 1, n, high))
    return float(min(1.0, len(seen) * tails.min()))
