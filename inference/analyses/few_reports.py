"""What a variance lacks where reports are too few, or too much alike, for it to be told from them.

Where all reports of a group say the same, or one has nearly all the weight, their own variance is near zero,
though others would differ. There one report more of either extreme is taken to have come, as by Laplace's
rule of succession over the reports that weigh as much (Kish's effective number): the second moment about the
estimate of what such reports leave possible. Of x of n yes reports, x being small, that is (x + 2)/n², with
which intervals of 90 % have their coverage from x = 0 on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import stats

from inference.analyses.table import Codes, Private, Values

# It stays with more reports that differ from the commonest, unless it is less than this part of the floor.
FEW_OTHERS, FAR_BELOW = 5.0, 0.1
SAID = ", its interval widened as too few reports differ from one another"
SAID_OF_ONE = ", of one {} alone, which does not tell how others would differ: it is not known"
SAID_OF_CLUSTERS = ", its interval widened as people of a cluster may be alike and few clusters tell how much"


class Lacking(NamedTuple):
    """extra: what is to be added to the variance, 0 where nothing is. size: how many reports it rests on.

    clustered: whether that is because people of a cluster may be alike. freedom: degrees of the units that
    were drawn. alone: what the one unit is called that there is.
    """

    extra: float = 0.0
    size: float = np.inf
    clustered: bool = False
    freedom: float = np.inf
    alone: str = ""

    @property
    def degrees(self) -> float:
        """Degrees of freedom."""
        return max(min(self.size - 1, self.freedom), 1.0)

    @property
    def words(self) -> str:
        """What to say of the interval."""
        if self.alone:
            return SAID_OF_ONE.format(self.alone)
        said = SAID_OF_CLUSTERS if self.clustered else SAID
        return said if self.extra else ""

    def of_units(self, freedom: float, unit: str) -> Lacking:
        """With the degrees of freedom of the units that were drawn, and what these are called."""
        return self._replace(freedom=freedom, alone=unit if self.clustered and freedom < 1 else "")

    def times(self, factor: float) -> Lacking:
        """Of an estimate that is so many times as large."""
        return self._replace(extra=self.extra * factor**2)

    def beside(self, other: Lacking) -> Lacking:
        """Of a difference of two."""
        clustered = any(one.clustered and one.extra > 0 for one in (self, other))
        size, freedom = min(self.size, other.size), min(self.freedom, other.freedom)
        return Lacking(self.extra + other.extra, size, clustered, freedom, self.alone or other.alone)


class People(NamedTuple):
    """Who an estimate is of. counts, weights: (rows,), 0 outside. units: (rows,) their clusters, or None."""

    counts: Codes
    weights: Values
    units: Codes | None = None


def lacking(variance: float, scores: Values, people: People, bounds: tuple[float, float]) -> Lacking:
    """What the variance of a weighted mean lacks. scores: (rows,); bounds: of those of any report."""
    own = (people.counts > 0) & (people.weights > 0)
    scores, counts = scores[own], people.counts[own].astype(np.float64)
    each = people.weights[own] / people.weights[own].max()
    shares = counts * each / (counts @ each)
    size = float((counts @ each) ** 2 / (counts @ each**2))
    floor = _floor(scores, shares, size, bounds)
    alike = float(np.bincount(np.unique(scores, return_inverse=True)[1], shares).max())
    if variance < FAR_BELOW * floor and people.units is not None:
        # Nothing tells whether people of a cluster differ: it counts as one.
        size = 1 / float(np.sum(np.bincount(people.units[own], shares) ** 2))
        floor = _floor(scores, shares, size, bounds)
        return Lacking(max(floor - variance, 0.0), size, clustered=True)
    if people.units is not None:
        return _of_clusters(variance, scores, counts, each / (counts @ each), people.units[own])
    if variance >= floor or (variance >= FAR_BELOW * floor and size * (1 - alike) >= FEW_OTHERS):
        return Lacking()
    return Lacking(max(floor - variance, 0.0), size)


def _of_clusters(variance: float, scores: Values, counts: Values, each: Values, units: Codes) -> Lacking:
    """The same of a mean over clusters, whose people may be as much alike as the reports leave open.

    each: (rows,) the share that one person of a row has in the mean. By the design effect so many people
    drawn one by one tell as much (Kish 1965; Korn & Graubard 1998); of few that differ, the variance of their
    truths has a floor as that of reports has.
    """
    mean = float(np.clip((counts * each) @ scores, 0.0, 1.0))
    alike = _most_alike(scores, counts, each, units, mean)
    clusters, alone = np.bincount(units, counts * each), float(counts @ each**2)
    size = 1 / float((1 - alike) * alone + alike * np.sum(clusters**2))
    if size * min(mean, 1 - mean) >= FEW_OTHERS:
        return Lacking()
    noise = max(float((counts * each**2) @ (scores * (scores - 1))), 0.0)
    moved = (size * mean + 1) / (size + 2)
    floor = moved * (1 - moved) / (size + 3) + (moved - mean) ** 2
    return Lacking(max(floor + noise - variance, 0.0), size, clustered=True)


def _most_alike(scores: Values, counts: Values, each: Values, units: Codes, mean: float) -> float:
    """The largest correlation of two people's truths in a cluster that the reports allow, of 95 in 100."""
    first, square = (np.bincount(units, counts * (each * scores) ** power) for power in (1, 2))
    whole, own = (np.bincount(units, counts * each**power) for power in (1, 2))
    several = whole**2 > own * (1 + 1e-9)
    if several.sum() < 2 or not 0 < mean < 1:
        return 1.0
    first, square, whole, own = (one[several] for one in (first, square, whole, own))
    # Of each cluster, without bias, the variance of its people's truths: share less share squared.
    inside = first / whole - (first**2 - square) / (whole**2 - own)
    part = whole / whole.sum()
    middle = float(part @ inside)
    error = float(np.sqrt(np.sum(part**2 * (inside - middle) ** 2) * len(part) / (len(part) - 1)))
    least = middle - float(stats.t.ppf(0.95, len(part) - 1)) * error
    return float(np.clip(1 - least / (mean * (1 - mean)), 0.0, 1.0))


def _floor(scores: Values, shares: Values, size: float, bounds: tuple[float, float]) -> float:
    """The second moment about the mean of `size` reports' scores, with one more at either bound."""
    mean, square = float(shares @ scores), float(shares @ scores**2)
    moved = (size * mean + sum(bounds)) / (size + 2)
    squares = (size * square + sum(one**2 for one in bounds)) / (size + 2)
    return (squares - moved**2) / (size + 3) + (moved - mean) ** 2


def bounds_of(column: Private) -> list[tuple[float, float]]:
    """The least and the greatest score of each answer that a report can have, whatever its part."""
    assert column.looks is not None
    low, high = [], []
    for matrix, exclusive in zip(column.looks.chances, column.looks.exclusive_parts, strict=True):
        scores = np.linalg.pinv(matrix)[matrix.max(axis=0) > 0]
        low.append(scores.min(axis=0) if exclusive else np.minimum(scores, 0).sum(axis=0))
        high.append(scores.max(axis=0) if exclusive else np.maximum(scores, 0).sum(axis=0))
    return list(zip(np.min(low, axis=0).tolist(), np.max(high, axis=0).tolist(), strict=True))
