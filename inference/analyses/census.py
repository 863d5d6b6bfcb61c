"""Slips in a census: people it does not count, rows that stand twice, counts that are none."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from inference.analyses.formula import levels_in
from inference.analyses.program import Assembled
from inference.analyses.public_columns import as_labels
from inference.analyses.table import Values
from inference.analyses.varying import level_text
from inference.results.diagnostics import listed
from ldp_client.commands.paper import ARM
from ldp_client.commands.study_warnings import WAVE
from ldp_client.documents.errors import InputError

# What a census may be of one of alone: no people are left out then.
_OF_ASKING = (WAVE, ARM)


def refuse_below_itself(census: pd.DataFrame, counts: Values) -> None:
    """Raises InputError where each whole row stands as often as any other, and more than once.

    Of one person each, rows may stand so.
    """
    often = _often(census)
    if len(often) < len(census) and len(set(often)) == 1 and not np.all(counts == 1):
        raise InputError(
            f"the census: every row stands {often[0]} times, count and all, which would multiply each total "
            "by as much: give each row once, or, where they are other people, once with all their counts"
        )


def _often(census: pd.DataFrame) -> list[int]:
    """How often each different row stands."""
    texts = pd.DataFrame({str(name): column.map(level_text) for name, column in census.items()})
    return [int(one) for one in texts.value_counts(dropna=False)]


def unseen(census: pd.DataFrame, analysis: Assembled) -> str:
    """Which level of the census no report has, in words; "" where that is not what is wrong."""
    known = analysis.cells.frame
    for name in map(str, known.columns):
        new = sorted(set(census[name].map(level_text)) - set(known[name].map(level_text)))
        if new and not pd.api.types.is_numeric_dtype(known[name]):
            return (
                f"the census: {name} has {new[0]!r}, a level that no report has: nothing was learnt of it; "
                f"leave those people out, or write (1 | {name}) in place of {name}, which draws them from "
                "the groups' law"
            )
    return ""


def levels_among(analysis: Assembled, by: str | None) -> list[str]:
    """The census's columns whose values are levels: of groups, of factors, of `by`, and labels of reports."""
    frame = analysis.cells.frame
    labels = [str(name) for name, column in frame.items() if not pd.api.types.is_numeric_dtype(column)]
    named = levels_in(analysis.formula, list(map(str, frame.columns)))
    return [*labels, *named, *([by] if by is not None else [])]


def in_kind_of(census: pd.Series, table: pd.Series, name: str) -> pd.Series:
    """A census column in the kind of the reports'. Raises InputError for what is none of its values."""
    numbers = pd.api.types.is_numeric_dtype(census)
    if isinstance(table.dtype, pd.CategoricalDtype):
        # A file's years, and codes such as 01, are numbers; a wave's or a choice's are labels.
        labels = as_labels(census, list(table.cat.categories), f"the census: {name}")
        odd = sorted(set(labels) - set(table.cat.categories))
        if odd:
            raise InputError(f"the census: {name} has {odd[0]!r}, which is none of its values")
        return labels.astype(table.dtype)
    if pd.api.types.is_numeric_dtype(table):
        if not numbers:
            raise InputError(f"the census: {name} must hold numbers, as it does in the reports")
        return census
    return census.map(level_text) if numbers and not pd.api.types.is_bool_dtype(census) else census


def notes_of(census: pd.DataFrame, counts: Values, reports: int) -> Iterator[str]:
    """What looks like a slip in its rows and counts."""
    twice = sum(1 for one in _often(census) if one > 1)
    # Of one person each, or of a sample with one weight, rows may well be alike.
    if twice and len(set(counts)) > 1:
        yield (
            f"{twice:,} of the census's rows stand more than once, count and all: unless these are other "
            "people, each total counts them too often"
        )
    broken = int(np.sum(counts != np.floor(counts)))
    if broken:
        yield (
            f"{broken:,} of {len(counts):,} counts of the census are not whole numbers of people: write "
            "numbers without marks between thousands; of shares or estimates, totals are these"
        )
    if counts.sum() < reports:
        yield (
            f"the census counts {counts.sum():,.6g} people, fewer than the {reports:,} that reports came "
            "from: its totals are of so few"
        )


def uncounted(analysis: Assembled, census: pd.DataFrame, counts: Values) -> tuple[list[str], list[str]]:
    """Levels that reports have and of which the census counts nobody: of waves and arms, and of people."""
    found: tuple[list[str], list[str]] = ([], [])
    frame, sizes = analysis.cells.frame, analysis.cells.sizes
    grouping = {one.column for one in analysis.every_group}
    for name in map(str, frame.columns):
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column) and name not in grouping:
            continue
        counted = set(census.loc[counts > 0, name].map(level_text))
        levels = column.map(level_text)
        gone = ~levels.isin(counted) & (sizes > 0)
        if gone.any():
            what = listed(list(dict.fromkeys(levels[gone])))
            found[0 if name in _OF_ASKING else 1].append(
                f"{int(sizes[gone].sum()):,} of {int(sizes.sum()):,} reports have {name} = {what}, of which "
                "the census counts nobody"
            )
    return found


def left_out(analysis: Assembled, census: pd.DataFrame, counts: Values) -> tuple[str, ...]:
    """Reasons not to take its shares and totals for those of all who were asked."""
    return tuple(
        f"{one}: shares and totals in the census leave such people out; add their rows, or, where it is of "
        "others alone, leave these reports out"
        for one in uncounted(analysis, census, counts)[1]
    )
