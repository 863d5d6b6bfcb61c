"""Two arms held against each other among people alike: where a public column has each of its levels."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from inference.analyses.arms_differing import Difference, called_apart, inside_of
from inference.analyses.design_based import scores_of
from inference.analyses.drawn_together import Clusters, Mask
from inference.analyses.groups_of_people import MOST_LEVELS, levels_or_bands, named
from inference.analyses.table import Private, Table, Values
from ldp_client.documents.errors import InputError

# Levels of words and bands of numbers; levels with fewer reports of an arm are taken together.
MOST_WORDS, FEWEST = 24, 20
UNHELD = "not held against each other at each level of"
BEYOND_COLUMNS = ", beyond what public columns explain"
Said = tuple[tuple[str, ...], tuple[str, ...]]


def apart_within(
    table: Table,
    column: Private,
    by: str,
    expected: Callable[[Mask], Values | None],
    remedy: str,
    alarm: float,
    among: str = "",
    clusters: Clusters | None = None,
) -> Said:
    """Reasons not to take the arms together, and notes: of one private column at the levels of a public one.

    A public column entered for other rows, or with its labels swapped, is seen nowhere else: all people
    together say the same. Half of the alarm is of all levels at once, half of each alone; where clusters
    have people of several levels these cannot be added up, and each is alone. expected: of some rows the
    difference of shares that public columns explain. remedy: what to do where people of one level do answer
    otherwise on paper. The rest is as in `arms_of`.
    """
    where = f" where {among}" if among else ""
    inside = inside_of(table, column)
    groups = list(_groups(table, inside, by))
    scores, told = scores_of(column), {}
    for name, rows in groups:
        try:
            own = [rows & arm for arm in inside]
            told[name] = Difference.of(column, scores, table.counts, own, expected(rows), clusters)
        except InputError:
            # Too few clusters of an arm are there.
            continue
    if not told:
        several = table.public[by].nunique() > 1
        return (), (f"devices and paper were {UNHELD} {by}{where}: too few reports of both",) * several
    most = min(told, key=lambda name: told[name].tail)
    each = [([told[most]], alarm / len(told) / (1 if clusters else 2))]
    every = [] if clusters else [(list(told.values()), alarm / 2)]
    if not any(called_apart(some, own) for some, own in (*each, *every)):
        return (), ()
    rest = "" if expected(groups[0][1]) is None else BEYOND_COLUMNS
    reason = (
        f"devices and paper disagree on {column.name} by {by}{where}, most where {most}{rest}: look whether "
        f"{by} was entered for the right rows; if it was, {remedy}, or find out who was asked on paper and "
        "what they did"
    )
    return (reason,), ()


def _groups(table: Table, inside: list[Mask], by: str) -> Iterator[tuple[str, Mask]]:
    """Names of levels or bands, and their rows; those with few reports of an arm are one, or left out."""
    column = table.public[by]
    people = table.counts * (inside[0] | inside[1])
    number = pd.api.types.is_numeric_dtype(column)
    levels = levels_or_bands(column, people.astype(np.float64), MOST_LEVELS if number else MOST_WORDS)
    places = np.unique(levels[people > 0])
    if len(places) < 2:
        return
    few = np.zeros(len(levels), bool)
    for rows in (levels == place for place in places):
        if _enough(table, inside, rows):
            yield f"{by} = {named(column[rows])}", rows
        else:
            few |= rows
    # Where all are few they are all people, who were looked at.
    if not few[people > 0].all() and _enough(table, inside, few):
        yield f"{by} is one of its levels with few reports", few


def _enough(table: Table, inside: list[Mask], rows: Mask) -> bool:
    return all(table.counts[arm & rows].sum() >= FEWEST for arm in inside)
