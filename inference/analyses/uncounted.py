"""Who reported and is not counted by a census: people of a level, or of levels that it has one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference.analyses.census import levels_among
from inference.analyses.program import Assembled
from inference.analyses.table import Codes, Values
from inference.analyses.varying import level_text
from inference.results.diagnostics import listed
from ldp_client.commands.study_warnings import WAVE

# What a census may be of one of alone: no people are left out then.
_OF_ASKING = (WAVE,)
# Of many small cells a census that is itself a sample lacks some. One of ten reports or more it would hardly
# ever lack, and of less than this share of the reports that a figure rests on, the figure would not show it.
LEAST, SHARE = 10, 0.02
# Of more columns than this, short of all, combinations are not looked through.
MOST_TOGETHER = 3
Which = NDArray[np.bool_]


@dataclass(frozen=True)
class Uncounted:
    """What to say of those not counted: notes, and reasons not to take the census's figures for all."""

    notes: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class _Levels:
    """A column's levels: texts, and the place of each among them, of reports' cells and census's rows.

    plain: whether it is a number that nothing but --by takes as levels.
    """

    name: str
    texts: Sequence[str]
    cells: Codes
    people: Codes
    plain: bool


def uncounted(analysis: Assembled, census: pd.DataFrame, counts: Values, by: str | None) -> Uncounted:
    """Levels, and levels together, that reports have and of which the census counts nobody.

    by: for whose levels there are shares.
    """
    columns = list(_columns(analysis, census[counts > 0], by))
    sizes = analysis.cells.sizes
    told = np.zeros(len(sizes), bool)
    found: dict[bool, list[str]] = {True: [], False: []}
    for column in columns:
        gone = ~np.isin(column.cells, column.people)
        told |= gone
        if not column.plain and sizes[gone].any():
            found[column.name in _OF_ASKING].append(_said([column], gone, sizes))
    for some in _together(columns, sizes * ~told):
        gone = _lacking(some, sizes * ~told, sizes, by)
        told |= gone
        if gone.any():
            found[all(column.name in _OF_ASKING for column in some)].append(_said(some, gone, sizes))
    return Uncounted(
        (
            *(f"{one}: its shares and totals are as others were asked" for one in found[True]),
            *_scattered(columns, sizes * ~told, sizes),
        ),
        tuple(
            f"{one}: shares and totals in the census leave such people out; add their rows, or, where it is "
            "of others alone, leave these reports out"
            for one in found[False]
        ),
    )


def _columns(analysis: Assembled, census: pd.DataFrame, by: str | None) -> Iterator[_Levels]:
    """The columns that tell people apart by levels."""
    frame = analysis.cells.frame
    named = levels_among(analysis, None)
    for name, column in frame.items():
        number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
        plain = number and name not in named
        if plain and name != by:
            continue
        both = pd.concat([_texts(column), _texts(census[name])], ignore_index=True)
        codes, texts = pd.factorize(both)
        places = np.asarray(codes, np.int64)
        yield _Levels(str(name), list(texts), places[: len(frame)], places[len(frame) :], plain)


def _texts(column: pd.Series) -> pd.Series:
    """Its levels as text, of yes or no as of 1 or 0."""
    numbers = column.astype(float) if pd.api.types.is_bool_dtype(column) else column
    # Of each level once, as a census may have many rows.
    codes, levels = pd.factorize(numbers)
    return pd.Series(np.asarray([level_text(level) for level in levels], object)[codes])


def _together(columns: Sequence[_Levels], untold: Codes) -> Iterator[Sequence[_Levels]]:
    """Each two columns, then each three, so that what is missing is named shortest; then all.

    None where nothing is missing of all together: then nothing is of some.
    """
    if len(columns) < 2 or not _gone(columns, untold).any():
        return
    first = np.unique(_cells_of(columns)[1], return_index=True)[1]
    distinct = [replace(column, people=column.people[first]) for column in columns]
    for many in range(2, min(len(columns), MOST_TOGETHER + 1)):
        yield from combinations(distinct, many)
    yield distinct


def _cells_of(some: Sequence[_Levels]) -> tuple[Codes, Codes]:
    """Of reports' cells and of the census's rows which combination of levels they have."""
    together, people = some[0].cells, some[0].people
    for column in some[1:]:
        both = np.concatenate([together, people]) * len(column.texts)
        both += np.concatenate([column.cells, column.people])
        # Numbered anew, so that they grow with rows and not with the product of levels.
        places = np.asarray(pd.factorize(both)[0], np.int64)
        together, people = places[: len(together)], places[len(together) :]
    return together, people


def _gone(some: Sequence[_Levels], untold: Codes) -> Which:
    """(cells,) whether nobody is counted of its levels together, and nothing was said of its reports."""
    together, people = _cells_of(some)
    return np.asarray(~np.isin(together, people) & (untold > 0))


def _lacking(some: Sequence[_Levels], untold: Codes, sizes: Codes, by: str | None) -> Which:
    """(cells,) whether nobody is counted of its levels together, of which enough reports are."""
    together, _ = _cells_of(some)
    own = np.bincount(together, untold)[together]
    groups = next((column.cells for column in some if column.name == by), np.zeros(len(sizes), np.int64))
    whole = np.bincount(groups, sizes)[groups]
    return np.asarray(_gone(some, untold) & (own >= np.maximum(LEAST, SHARE * whole)))


def _scattered(columns: Sequence[_Levels], untold: Codes, sizes: Codes) -> Iterator[str]:
    """A note of many that are few in each cell."""
    many = int(untold[_gone(columns, untold)].sum()) if columns else 0
    if many >= max(LEAST, SHARE * sizes.sum()):
        yield (
            f"{many:,} of {int(sizes.sum()):,} reports are of small groups by "
            f"{listed([column.name for column in columns])} together of which the census counts nobody: its "
            "shares and totals are of people in other groups"
        )


def _said(some: Sequence[_Levels], gone: Which, sizes: Codes) -> str:
    """How many reports have which levels that nobody is counted of."""
    if len(some) == 1:
        (one,) = some
        what = f"{one.name} = {listed([one.texts[place] for place in dict.fromkeys(one.cells[gone])])}"
    else:
        rows = zip(*(column.cells[gone] for column in some), strict=True)
        what = listed(
            [
                " and ".join(
                    f"{column.name} = {column.texts[place]}" for column, place in zip(some, row, strict=True)
                )
                for row in dict.fromkeys(rows)
            ]
        )
    return (
        f"{int(sizes[gone].sum()):,} of {int(sizes.sum()):,} reports have {what}, of which the census counts "
        "nobody"
    )
