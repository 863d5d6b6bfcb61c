"""The shares of a crossed table if some reports were false: exact, by a number of each report.

Of each private column a report has a number for each answer, whose mean over honest reports is that answer's
share; the product over columns has the share of people who gave all these answers as its mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np

from inference.analyses.cells import Cells
from inference.analyses.channels import NO_CHANNEL, one_channel
from inference.analyses.table import Codes, Private, Values
from inference.false_reports.functionals import NINETY, TAILS, Functional, around
from inference.results.identified import MOST_FALSE, Bounds, IdentifiedSets

DEPENDENCE = "measures of dependence have no bound here"


def joint_sets(
    columns: Sequence[Private], cells: Cells, groups: Codes, draws: Mapping[str, Values], share: float
) -> IdentifiedSets | None:
    """The set of each share, in the order of `draws`; None where the share of false reports is zero.

    groups: (cells,) the table that each belongs to. All false reports may be of one table.
    """
    if not share:
        return None
    numbers = [numbers_of(one) for one in columns]
    if any(one is None for one in numbers):
        return IdentifiedSets(share, open=NO_CHANNEL)
    known = [one for one in numbers if one is not None]
    joint = reduce(
        _crossed, [one.each[cells.reports[column.name]] for one, column in zip(known, columns, strict=True)]
    )
    least, largest = reduce(_extremes, [(one.least, one.largest) for one in known])
    group = groups[cells.cell]
    bounds: list[Bounds] = []
    for place in range(int(groups.max()) + 1):
        weights = np.where(group == place, cells.counts, 0).astype(np.float64)
        own = min(share * cells.counts.sum() / weights.sum(), 1.0)
        bounds += _of_table(joint, weights, least, largest, own)
    sets = {}
    for (name, values), (low, high) in zip(draws.items(), bounds, strict=True):
        first, last = np.quantile(values, TAILS)
        sets[name] = around(low, high, (float(first), float(last)), (0.0, 1.0))
    what = {name: f"the share of {name[2:-1]}" for name in sets}
    return IdentifiedSets(share, sets, what, DEPENDENCE)


class Numbers(NamedTuple):
    """each (distinct reports, answers): their means over honest reports are the shares.

    least, largest (answers,): over all reports that are possible.
    """

    each: Values
    least: Values
    largest: Values


def numbers_of(column: Private) -> Numbers | None:
    """None without one known channel that tells its answers apart."""
    looks = one_channel(column)
    if looks is None:
        return None
    chances = looks.chances[0]
    if looks.exclusive_parts[0]:
        inverse = np.linalg.pinv(chances)
        if not np.allclose(chances @ inverse, np.eye(len(chances))):
            return None
        possible = inverse[chances.max(axis=0) > 0]
        return Numbers(looks.shows @ inverse, possible.min(axis=0), possible.max(axis=0))
    p, q = float(chances.max()), float(chances.min())
    ends = (np.full(len(chances), (supported - q) / (p - q)) for supported in (0, 1))
    return Numbers((looks.shows - q) / (p - q), *ends)


def _of_table(joint: Values, weights: Values, least: Values, largest: Values, share: float) -> list[Bounds]:
    if share >= MOST_FALSE:
        return [Bounds.of(0.0, 1.0)] * joint.shape[1]
    n = weights.sum()
    mean = weights @ joint / n
    error = np.sqrt(np.maximum(weights @ joint**2 / n - mean**2, 0.0) / n)
    found = Functional(mean - NINETY * error, mean + NINETY * error, least, largest).bounds(share)
    return [Bounds.of(low, high) for low, high in zip(*found, strict=True)]


def _crossed(first: Values, second: Values) -> Values:
    return np.asarray((first[:, :, None] * second[:, None, :]).reshape(len(first), -1))


def _extremes(first: tuple[Values, Values], second: tuple[Values, Values]) -> tuple[Values, Values]:
    """The least and the largest products."""
    products = np.stack([one[:, None] * other[None, :] for one in first for other in second])
    return products.min(axis=0).ravel(), products.max(axis=0).ravel()
