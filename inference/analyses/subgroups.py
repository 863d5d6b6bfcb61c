"""Groups of people for checks: all people, and each public column's levels or bands."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from inference.analyses.table import Codes, Values, level_text

Mask = NDArray[np.bool_]

# The most groups by one column, and about the most shares of all groups together that a page shows.
MOST_LEVELS, MOST_GROUPS = 8, 48
# The least for each column, however many columns there are: fewer groups would hide a hump.
FEWEST_LEVELS = 3
# Where a number is cut: at its middle, and in the tails, which a wrong law misses.
CUTS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
# With few bands of a number, the first and last each hold a tenth of a normal law's people.
TAIL = 1.28


def groups_of(frame: pd.DataFrame, people: Values, by: str | None, most: int) -> Iterator[tuple[str, Mask]]:
    """Yield groups' names and cells: all people, each level of `by`, then each level of every other column.

    people: (cells,). most: about how many groups, divided among the columns.
    """
    yield "all", np.ones(len(frame), bool)
    columns = sorted(frame.columns, key=lambda column: column != by)
    each = int(np.clip((most - 1) // max(len(columns), 1), FEWEST_LEVELS, MOST_LEVELS))
    for column in columns:
        levels = levels_or_bands(frame[column], people, MOST_GROUPS if column == by else each)
        places = list(dict.fromkeys(levels))
        for mask in (levels == place for place in places if len(places) > 1):
            values = frame[column][mask]
            # A level, the ends of a band, or the number of merged levels.
            name = level_text(values.iloc[0])
            if values.nunique() > 1 and pd.api.types.is_numeric_dtype(values):
                name = f"{values.min():.4g}…{values.max():.4g}"
            elif values.nunique() > 1:
                name = f"{values.nunique()} others"
            yield f"{column} = {name}", mask


def levels_or_bands(column: pd.Series, people: Values, most: int) -> Codes:
    """Return each cell's level or band, at most `most` of them.

    Numbers are cut into bands, with fewer people in the bands at the ends, where a wrong law shows. The most
    frequent words are levels, and all other words together are one level.
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


def cuts_of(values: Values, counts: Codes) -> Values:
    """Return cuts that divide numbers with these counts into parts, halfway between observed values."""
    places, codes = np.unique(values, return_inverse=True)
    shares = np.cumsum(np.bincount(codes.ravel(), counts)) / counts.sum()
    middles = (places[1:] + places[:-1]) / 2
    if not len(middles):
        return places
    return np.unique(middles[np.minimum(np.searchsorted(shares, CUTS), len(middles) - 1)])
