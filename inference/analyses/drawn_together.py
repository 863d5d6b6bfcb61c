"""Two groups held against each other where some people were drawn together: in households, in villages.

People of a cluster are alike, so that shares of groups differ more by chance than those of as many people
drawn one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from inference.analyses.design_based import covariance_of, linearised
from inference.analyses.samples import Sampled
from inference.analyses.table import Codes, Values
from ldp_client.documents.errors import InputError

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Clusters:
    """People who were drawn together. units: (rows,) whose they are. unit: what they are called."""

    units: Codes
    unit: str

    @classmethod
    def of_sample(cls, sampled: Sampled) -> Clusters | None:
        """Those of a sample, if it has some."""
        return None if sampled.clusters is None else cls(sampled.clusters, sampled.unit)

    @property
    def many(self) -> int:
        """How many there are."""
        return len(np.unique(self.units))

    def of(self, rows: Mask) -> Clusters:
        """Those of some rows, numbered anew: one without any of them tells nothing."""
        return replace(self, units=np.unique(self.units[rows], return_inverse=True)[1].ravel())

    def sampled(self) -> Sampled:
        """As a sample of nothing but them."""
        return Sampled(np.ones(len(self.units)), clusters=self.units, unit=self.unit)


def together(
    scores: Values, counts: Codes, inside: Sequence[Mask], clusters: Clusters
) -> NDArray[np.float64]:
    """The covariance of the difference of two arms' shares: a cluster that has people of both moves both."""
    moved = np.zeros_like(scores)
    for sign, rows in zip((-1, 1), inside, strict=True):
        moved[rows] = sign * linearised(scores[rows], np.ones(int(rows.sum())), counts[rows])[1]
    either = inside[0] | inside[1]
    return covariance_of(moved[either], counts[either], clusters.of(either).sampled())


def degrees_of(within: Sequence[Clusters | None], freed: int) -> float:
    """The degrees of freedom that the covariance of `freed` differences has: of the arm with fewest clusters.

    Raises InputError where they are too few for so many differences.
    """
    degrees = min(np.inf if one is None else one.many - 1 for one in within)
    if degrees < freed:
        raise InputError(
            f"an arm has people of {degrees + 1:.0f} clusters alone, which do not tell how {freed + 1} "
            "shares differ between these: ask in more of them",
            code="compare.too_few_clusters",
        )
    return float(degrees)


def tail_of(statistic: float, freed: int, degrees: float) -> float:
    """How often a squared distance is as large by chance, of a covariance with so many degrees of freedom.

    Hotelling's law; without end of them it is that of χ².
    """
    if np.isinf(degrees):
        return float(stats.chi2.sf(statistic, freed))
    rest = degrees - freed + 1
    return float(stats.f.sf(statistic * rest / (degrees * freed), freed, rest))
