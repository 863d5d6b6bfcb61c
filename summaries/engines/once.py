"""Counts each report once, among rows that hold all occurrences of their ids."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from summaries.engines.rows import CONTENT, Places, Rows, halves_of, places_of


class Once(NamedTuple):
    """Attributes:
    kept: the rows that count, each id's first.
    repeated: how many rows came again.
    clashes: where a row has the id of another with different content, and that id; in any order.
    """

    kept: Rows
    repeated: int
    clashes: list[tuple[int, str]]


def once(rows: Rows) -> Once:
    """Count each id once.

    Args:
        rows: all rows of some ids, in any order.

    Returns:
        For each id the row that was read first; later rows with the same content are repeated, others clash.
    """
    high, low = halves_of(rows)
    doubtful = _shared(high)
    if not len(doubtful):
        return Once(rows, 0, [])
    some, places = rows[doubtful], places_of(rows[doubtful])
    order = np.lexsort((places, low[doubtful], high[doubtful]))
    doubtful, some = doubtful[order], some[order]
    is_first = np.ones(len(some), dtype=np.bool_)
    is_first[1:] = (np.diff(high[doubtful]) != 0) | (np.diff(low[doubtful]) != 0)
    first_of = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
    is_same = (some[:, CONTENT:] == some[first_of, CONTENT:]).all(axis=1)
    clashing = some[~is_same]
    kept = np.ones(len(rows), dtype=np.bool_)
    kept[doubtful[~is_first]] = False
    ids = [bytes(row[CONTENT - 16 : CONTENT]).hex() for row in clashing]
    clashes = list(zip(places_of(clashing).tolist(), ids))
    return Once(rows[kept], int((~is_first & is_same).sum()), clashes)


def _shared(values: Places) -> NDArray[np.int64]:
    """Return the places of values that occur more than once."""
    ordered = np.sort(values)
    again = ordered[1:][ordered[1:] == ordered[:-1]]
    return np.flatnonzero(np.isin(values, again)) if len(again) else np.zeros(0, np.int64)
