"""By how much two arms differ in one private column, and whether that is more than chance would have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inference.analyses.arms_drawn import Arm, Pair, Part, seldom
from inference.analyses.design_based import estimate
from inference.analyses.drawn_together import Clusters, Mask, degrees_of, tail_of, together
from inference.analyses.few_reports import Lacking, People, bounds_of, lacking
from inference.analyses.table import Codes, Private, Table, Values
from ldp_client.commands.paper import ARM

DEVICE, PAPER = "device", "paper"


@dataclass(frozen=True)
class Difference:
    """What two arms say of one private column, and how far it is from what is expected.

    inside: the rows of each arm; parts: what these say alone. moved: (answers,) paper − devices, beyond
    `expected`; covariance, lacks, degrees: of it. scores: (rows, answers). counts: (rows,).
    """

    column: Private
    scores: Values
    counts: Codes
    inside: Sequence[Mask]
    parts: Sequence[Part]
    moved: Values
    expected: Values
    covariance: NDArray[np.float64]
    lacks: list[Lacking]
    degrees: float

    @classmethod
    def of(
        cls,
        column: Private,
        scores: Values,
        counts: Codes,
        inside: Sequence[Mask],
        expected: Values | None = None,
        clusters: Clusters | None = None,
    ) -> Difference:
        """Raises InputError where clusters are too few. expected: None where nothing is."""
        within = [clusters and clusters.of(rows) for rows in inside]
        parts = [
            _part(column, scores[rows], counts[rows], own) for rows, own in zip(inside, within, strict=True)
        ]
        degrees = degrees_of(within, len(column.answers) - 1)
        explained = np.zeros(len(column.answers)) if expected is None else expected
        moved = parts[1][0] - parts[0][0] - explained
        lacks = [one.beside(other) for one, other in zip(parts[0][2], parts[1][2], strict=True)]
        covariance = parts[0][1] + parts[1][1]
        if clusters is not None:
            covariance = together(scores, counts, inside, clusters)
        covariance += np.diag([one.extra for one in lacks])
        return cls(column, scores, counts, inside, parts, moved, explained, covariance, lacks, degrees)

    @property
    def statistic(self) -> float:
        """The squared distance; shares add up to 1: one of them says nothing beside the others."""
        return float(self.moved[1:] @ np.linalg.pinv(self.covariance[1:, 1:]) @ self.moved[1:])

    @property
    def freed(self) -> int:
        """Of how many numbers that is."""
        return len(self.moved) - 1

    @property
    def tail(self) -> float:
        """How often it is as large by chance, by the normal law."""
        return tail_of(self.statistic, self.freed, self.degrees)

    def pair(self) -> Pair:
        """As it could have come out otherwise."""
        arms = [
            Arm.of(self.column, self.counts, self.scores, *one)
            for one in zip(self.inside, self.parts, strict=True)
        ]
        return Pair(arms, self.moved, self.expected)


def called_apart(groups: Sequence[Difference], alarm: float) -> bool:
    """Whether the arms differ in these groups together by more than chance would, at most so often.

    Several groups have no people in common, and none who were drawn together.
    """
    statistic, freed = sum(one.statistic for one in groups), sum(one.freed for one in groups)
    degrees = min(one.degrees for one in groups)
    if tail_of(statistic, freed, degrees) >= alarm:
        return False
    # Of few records the normal law says too little of what is rare.
    return bool(np.isfinite(degrees)) or seldom([one.pair() for one in groups], alarm)


def inside_of(table: Table, column: Private) -> list[Mask]:
    """The rows of each arm that have a report of the column."""
    present = column.codes < len(column.vectors) - bool(column.missing)
    return [(table.public[ARM] == arm).to_numpy() & present for arm in (DEVICE, PAPER)]


def _part(column: Private, scores: Values, counts: Codes, clusters: Clusters | None) -> Part:
    """An arm's shares, their covariance, and what each variance lacks. Raises InputError for one cluster."""
    shares, own = estimate(scores, np.ones(len(counts)), counts, clusters.sampled() if clusters else None)
    people = People(counts, np.ones(len(counts)), clusters.units if clusters else None)
    lacks = [lacking(own[at, at], scores[:, at], people, one) for at, one in enumerate(bounds_of(column))]
    if clusters is not None:
        lacks = [one.of_units(clusters.many - 1, clusters.unit) for one in lacks]
    return shares, own, lacks
