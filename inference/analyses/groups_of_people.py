"""Groups of people that checks look at: all, and those of each public column's levels or bands."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from inference.analyses.cells import CUTS
from inference.analyses.table import Codes, Values
from inference.analyses.varying import level_text

Mask = NDArray[np.bool_]

# Groups of people by one column, and about how many shares of all groups together: a page shows no more.
MOST_LEVELS, MOST_GROUPS = 8, 48
# Of each column, however many there are: fewer would hide a hump.
FEWEST_LEVELS = 3
# Of few bands of a number, where the first and the last begin: a tenth of a normal law's people beyond each.
TAIL = 1.28


def groups_of(frame: pd.DataFrame, people: Values, by: str | None, most: int) -> Iterator[tuple[str, Mask]]:
    """Names of groups, and their cells: all, and those of each level of `by`, and of every other column.

    people: (cells,). most: about how many groups, of which each column has its part.
    """
    yield "all", np.ones(len(frame), bool)
    columns = sorted(frame.columns, key=lambda column: column != by)
    each = int(np.clip((most - 1) // max(len(columns), 1), FEWEST_LEVELS, MOST_LEVELS))
    for column in columns:
        levels = levels_or_bands(frame[column], people, MOST_GROUPS if column == by else each)
        places = list(dict.fromkeys(levels))
        for mask in (levels == place for place in places if len(places) > 1):
            yield f"{column} = {named(frame[column][mask])}", mask


def named(values: pd.Series) -> str:
    """A level, or the ends of a band, or how many words are taken together."""
    levels = values.unique()
    if len(levels) == 1:
        return level_text(levels[0])
    if pd.api.types.is_numeric_dtype(values):
        return f"{values.min():.4g}…{values.max():.4g}"
    return f"{len(levels)} others"


def levels_or_bands(column: pd.Series, people: Values, most: int) -> Codes:
    """Of each cell its level, of so many at most.

    Numbers are cut into bands, those at the ends with fewer people, as a wrong law shows there; of words the
    most frequent are levels, and all others together are one.
    """
    codes, values = pd.factorize(column, sort=True)
    codes = codes.astype(np.int64)
    if len(values) <= most:
        return codes
    sizes = np.bincount(codes, people, len(values))
    if pd.api.types.is_numeric_dtype(column):
        ends = CUTS if most > len(CUTS) else stats.norm.cdf(np.linspace(-TAIL, TAIL, most - 1))
        return np.searchsorted(ends, (np.cumsum(sizes) - sizes / 2) / sizes.sum())[codes]
    ranks = np.argsort(np.argsort(-sizes, kind="stable"))
    return np.asarray(np.minimum(ranks, most - 1)[codes])
