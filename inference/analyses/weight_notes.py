"""What a reader must know of weights: whether few reports carry much, and whether they count people.

Each wave is a sample of its own: what all waves together hide is said of the one that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from inference.analyses.table import Table, Values

# Few reports carry much where this part of them has more than that of the weight, or where Kish's effective
# number is less than this part of theirs.
FEW, MUCH, LEAST_EFFECTIVE = 0.01, 0.25, 0.2
# Weights whose mean is so near to 1, or to these, were scaled to it. A smaller power of ten may be a plain
# sample's: one in 100 of a register.
SCALED, SCALES = 1e-3, (1e5, 1e6, 1e7, 1e8)
# Of one population, waves' totals do not differ so.
UNLIKE = 10.0


def heavy(table: Table, weights: Values) -> Iterator[str]:
    """Notes where few reports carry much of the weight, of all or of a wave's."""
    for where, rows in table.samples:
        yield from _heavy(where, table.counts[rows].astype(np.float64), weights[rows])
    if table.waves:
        yield from _heavy("", table.counts.astype(np.float64), weights)


def _heavy(where: str, counts: Values, weights: Values) -> Iterator[str]:
    n, whole = float(counts.sum()), float(counts @ weights)
    effective = whole**2 / float(counts @ weights**2)
    order = np.argsort(-weights)
    before = np.cumsum(counts[order]) - counts[order]
    carried = float(np.clip(FEW * n - before, 0, counts[order]) @ weights[order]) / whole
    if carried <= MUCH and effective >= LEAST_EFFECTIVE * n:
        return
    yield (
        f"{_at(where)}few reports carry much of the weight: the heaviest {100 * FEW:g} % of them have "
        f"{100 * carried:.0f} % of it, so that weighted averages are worth those of {effective:,.0f} "
        f"reports of equal weight (Kish's effective number), not {n:,.0f}: look at whose they are, as "
        "a few false ones could move these averages at will"
    )


def scaled(table: Table, weights: Values, name: str) -> Iterator[str]:
    """Notes where weights look as if they had been scaled, so that totals are no numbers of people."""
    found = [note for where, rows in table.samples for note in _scaled(table, weights, name, where, rows)]
    # Where all were normalised, one note says it.
    alike = list(_scaled(table, weights, name, "", np.ones(len(weights), bool)))
    yield from alike if alike and len(found) == len(table.samples) else found


def _scaled(table: Table, weights: Values, name: str, where: str, rows: NDArray[np.bool_]) -> Iterator[str]:
    whole, n = float(table.counts[rows] @ weights[rows]), int(table.counts[rows].sum())
    if not n:
        return
    mean = whole / n
    mind = "its shares do not mind, but averages over waves do, and" if where else "shares do not mind, but"
    if mean < 1 + SCALED:
        yield (
            f"{_at(where)}{name} is {mean:.4g} on average, as weights that were normalised: {mind} a total "
            f"of {whole:,.6g} counts reports, not people; for numbers of people give how many each row "
            "stands for"
        )
    elif any(abs(mean / scale - 1) < SCALED for scale in SCALES):
        yield (
            f"{_at(where)}{name} is {mean:,.6g} on average, as in files that keep weights without a decimal "
            f"point: {mind} a total is no number of people; for that give how many each row stands for"
        )


def unlike(waves: str, name: str, totals: Mapping[str, float]) -> Iterator[str]:
    """A note where waves weigh so unlike that averages over all of them are of one. waves: their column."""
    if len(totals) < 2:
        return
    least, most = min(totals, key=totals.__getitem__), max(totals, key=totals.__getitem__)
    if totals[most] > UNLIKE * totals[least]:
        yield (
            f"{name} adds up to {totals[most]:,.6g} where {most}, and to {totals[least]:,.6g} where {least}: "
            f"averages over waves are nearly those of the heavier alone; look at shares by {waves}, or give "
            "each wave in the same unit"
        )


def _at(where: str) -> str:
    return f"where {where}, " if where else ""
