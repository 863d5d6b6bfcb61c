"""All reports that a private column could have had, and numbers of them whose mean is a share."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from inference.analyses.table import Looks, Private, Values

# Of more choices the possible sets are too many to look at each.
MOST_CHOICES = 8
NO_CHANNEL = (
    "the reports that could have been sent are too many to look at each, or their law is of several parts, "
    "or leaves a share open"
)


def one_channel(column: Private) -> Looks | None:
    """What its reports look like, where all rows have one known channel and a report."""
    looks = None if column.channel is not None else column.looks
    if looks is None or column.unknown or looks.unknown or column.missing or len(looks.chances) != 1:
        return None
    return looks


def all_reports(column: Private) -> Values | None:
    """P(report | answer) of every possible report, (reports, answers); None where they are not known."""
    looks = one_channel(column)
    if looks is None:
        return None
    if looks.exclusive_parts[0]:
        return looks.chances[0].T[looks.chances[0].max(axis=0) > 0]
    k = looks.chances.shape[1]
    return None if k > MOST_CHOICES else _of_sets(looks, k)


def _of_sets(looks: Looks, k: int) -> Values:
    """Of sets of choices: of one size, or of independent bits."""
    sizes = looks.shows.sum(axis=1)
    often, seldom = float(looks.chances[0].max()), float(looks.chances[0].min())
    if len(looks.shows) > 1 and np.ptp(sizes) == 0 and sizes[0] < k:
        size = int(sizes[0])
        bits = np.zeros((0, k))
        for chosen in combinations(range(k), size):
            bits = np.vstack([bits, np.isin(np.arange(k), chosen)])
        odds = often * (k - size) / ((1 - often) * size)
        weights = np.where(bits == 1, odds, 1.0)
        return np.asarray(weights / weights.sum(axis=0))
    bits = ((np.arange(1 << k)[:, None] >> np.arange(k)) & 1).astype(np.float64)
    of_answer = [np.where(np.arange(k) == answer, often, seldom) for answer in range(k)]
    each = [np.prod(np.where(bits == 1, chance, 1 - chance), axis=1) for chance in of_answer]
    return np.stack(each, axis=1)
