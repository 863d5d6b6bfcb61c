"""Rows that stand twice: in two waves' tables, or in one."""

from __future__ import annotations

from collections.abc import Iterator
from math import gcd
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from inference.analyses.public_columns import INEXACT
from inference.analyses.table import Codes
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted

# Tables of two waves, or rows, that agree so seldom by chance are the same.
BY_CHANCE = 1e-6
# Columns number the rows together where both tables have so large a share of their values in common.
NUMBERED = 0.5
# And only where, beside them, fewer rows than this are alike.
ALIKE = 0.9


def twins(one: tuple[str, pd.DataFrame], other: tuple[str, pd.DataFrame]) -> Iterator[str]:
    """A note where two waves' tables hold the same rows, in whatever order, by a chance that is not small.

    Raises InputError where they are one table: in one order, or where two samples that are alike in all else
    would hardly ever agree in how often each row comes, or in so many whole rows.
    """
    (name, frame), (other_name, other_frame) = one, other
    both = f"waves {name} and {other_name}"
    shared = _shared(frame, other_frame)
    rows, counts = np.unique(_digests(frame), return_counts=True)
    other_rows, other_counts = np.unique(_digests(other_frame), return_counts=True)
    alike = sorted(map(str, frame.columns)) == sorted(map(str, other_frame.columns))
    same = alike and np.array_equal(rows, other_rows) and np.array_equal(counts, other_counts)
    # How often two Poisson counts of that mean agree, one of them given by the others' sum.
    chance = float(np.prod(np.sort(1 / np.sqrt(4 * np.pi * counts))[1:])) if same else 1.0
    if same and (frame.equals(other_frame) or chance < BY_CHANCE):
        raise InputError(f"{both} have the same table: give each wave its own, once", code="wave.same_table")
    if shared:
        raise InputError(
            f"{both} share {counted(shared, 'whole row')}, far more than chance explains: give each wave "
            "the rows of its own people alone",
            code="wave.shared_rows",
        )
    if same:
        yield f"{both} hold the same rows in another order: make sure that it is not one table"


def _shared(frame: pd.DataFrame, other: pd.DataFrame) -> int:
    """How many whole rows, over common columns, stand in both tables; 0 where chance may explain them.

    Columns that number the rows may have the same values in both tables: rows that have one are to agree in
    all else, far more often than they do with the next such row.
    """
    names = [name for name in frame.columns if name in other.columns]
    ids = [name for name in names if frame[name].is_unique and other[name].is_unique]
    rest = [name for name in names if name not in ids]
    within = _numbers_within(frame, other, rest)
    numbered: list[Any] = []
    for key in [*([name] for name in ids), *within]:
        _, left, right = np.intersect1d(
            _digests(frame[key]), _digests(other[key]), assume_unique=True, return_indices=True
        )
        # In the tables' own order, in which neighbours may be alike.
        left, right = left[np.argsort(left)], right[np.argsort(left)]
        beside = [name for name in rest if name not in key]
        if beside and len(left) > 1:
            mine, theirs = _digests(frame[beside])[left], _digests(other[beside])[right]
            found, next_to = int((mine == theirs).sum()), int((mine == np.roll(theirs, 1)).sum())
            if stats.binom.sf(found - 1, found + next_to, 0.5) < BY_CHANCE:
                return found
            # Where what stands beside is nearly always alike these may be the same people, and no numbers.
            numbered += key if found < ALIKE * len(left) else []
    rest = [name for name in rest if name not in numbered]
    return _shared_rows(frame[rest], other[rest])


def _numbers_within(frame: pd.DataFrame, other: pd.DataFrame, names: list[Any]) -> list[list[Any]]:
    """Columns that together number the rows, as households within villages do, alike in both tables.

    Columns are left out as long as the others tell all rows of each table apart, in three orders, as chance
    may let others do so; those that number have most of their values in both tables.
    """
    # Of a row the sum over columns, each with a factor of its own, so that a column is left out quickly.
    digests = [
        {name: _digests(one[[name]]) * np.uint64(2 * place + 1) for place, name in enumerate(names)}
        for one in (frame, other)
    ]
    found: list[list[Any]] = []
    for order in (sorted(names, key=lambda name: frame[name].nunique()), names, names[::-1]):
        key = list(names)
        rows = [np.sum(list(each.values()), axis=0) for each in digests]
        for name in order:
            fewer = [all_of - each[name] for all_of, each in zip(rows, digests, strict=True)]
            if len(key) > 1 and all(len(np.unique(one)) == len(one) for one in fewer):
                key, rows = [one for one in key if one != name], fewer
        shared = len(np.intersect1d(*rows))
        if len(key) < len(names) and key not in found and shared >= NUMBERED * min(len(frame), len(other)):
            found.append(key)
    return found


def _shared_rows(frame: pd.DataFrame, other: pd.DataFrame) -> int:
    """How many rows stand once in each; 0 where rows that stand twice in one of them are as many.

    Two rows of a table agree as often as one of each: of all pairs those between the tables are this share.
    """
    if not len(frame.columns):
        return 0
    (rows, counts), (other_rows, other_counts) = (
        np.unique(_digests(one), return_counts=True) for one in (frame, other)
    )
    found = len(np.intersect1d(rows[counts == 1], other_rows[other_counts == 1], assume_unique=True))
    twice = int((counts == 2).sum() + (other_counts == 2).sum())
    between = 2 * len(frame) * len(other) / (len(frame) + len(other)) ** 2
    return found if stats.binom.sf(found - 1, found + twice, between) < BY_CHANCE else 0


def often_twice(frame: pd.DataFrame) -> tuple[str, ...]:
    """A note where most of a table's different rows stand twice, or four times, as chance would not have it.

    Raises InputError where all stand so often, as in a file that was put below itself.
    """
    counts = np.unique(_digests(frame), return_counts=True)[1]
    each = gcd(*map(int, counts))
    # Of independent people an even count is never likelier than an odd one.
    if each > 1 and 0.5 ** len(counts) < BY_CHANCE:
        raise InputError(
            f"every row stands {each} times, or a multiple of it, as where a file was put below itself: "
            "give each person's row once",
            code="table.rows_repeated",
        )
    even = int((counts % 2 == 0).sum())
    if stats.binom.sf(even - 1, len(counts), 0.5) >= BY_CHANCE:
        return ()
    return (
        f"{even:,} of {len(counts):,} different rows stand twice, or another even number of times: where "
        "people were entered twice, intervals are too narrow",
    )


def _digests(frame: pd.DataFrame) -> Codes:
    """A hash of each row, whatever the order of its columns and the kinds of its numbers."""
    plain = {
        str(name): column.astype(np.float64 if _is_exact(column) else str)
        for name, column in sorted(frame.items(), key=lambda pair: str(pair[0]))
    }
    return pd.util.hash_pandas_object(pd.DataFrame(plain), index=False).to_numpy()


def _is_exact(column: pd.Series) -> bool:
    """Whether a column is of numbers that float64 tells apart: long ids are not."""
    if not pd.api.types.is_numeric_dtype(column):
        return False
    return not (pd.api.types.is_integer_dtype(column) and (column.abs() >= INEXACT).any())
