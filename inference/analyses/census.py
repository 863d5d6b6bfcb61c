"""Slips in a census: levels that no report has, rows that stand twice, counts that are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from inference.analyses.formula import levels_in
from inference.analyses.program import Assembled
from inference.analyses.public_columns import as_labels, looks
from inference.analyses.table import Codes, Values
from inference.analyses.varying import level_text
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted


def refuse_below_itself(census: pd.DataFrame, counts: Values) -> None:
    """Raises InputError where each whole row stands as often as any other, and more than once.

    Of one person each, rows may stand so.
    """
    often = _often(census)
    if len(often) < len(census) and len(set(often)) == 1 and not np.all(counts == 1):
        raise InputError(
            f"the census: every row stands {often[0]} times, count and all, which would multiply each total "
            "by as much: give each row once, or, where they are other people, once with all their counts",
            code="census.all_rows_repeated",
        )


def _often(census: pd.DataFrame) -> list[int]:
    """How often each different row stands."""
    texts = pd.DataFrame({str(name): column.map(level_text) for name, column in census.items()})
    return [int(one) for one in texts.value_counts(dropna=False)]


def refuse_other_spelling(name: str, levels: Iterable[str], known: Sequence[str]) -> None:
    """Raises InputError for a level of the reports in other case, or with other blanks or zeros."""
    folded = {_folded(level): level for level in known}
    for level in levels:
        if level not in known and _folded(level) in folded:
            raise InputError(
                f"the census: {name} has {level!r}, and the reports {folded[_folded(level)]!r}: write both "
                "alike, or people would be taken as of a group that nobody asked",
                code="census.other_spelling",
            )


def _folded(level: str) -> str:
    return level.lstrip("0") if level.isdecimal() else looks(level)


def unseen(census: pd.DataFrame, analysis: Assembled) -> str:
    """Which level of the census no report has, in words; "" where that is not what is wrong.

    Raises InputError where it is one that reports have, spelt in another way.
    """
    known = analysis.cells.frame
    for name in map(str, known.columns):
        old = set(known[name].map(level_text))
        new = sorted(set(census[name].map(level_text)) - old)
        refuse_other_spelling(name, new, sorted(old))
        if new and not pd.api.types.is_numeric_dtype(known[name]):
            return (
                f"the census: {name} has {new[0]!r}, a level that no report has: nothing was learnt of it; "
                f"leave those people out, or write (1 | {name}) in place of {name}, which draws them from "
                "the groups' law"
            )
    return ""


def labels_of(frame: pd.DataFrame) -> dict[str, list[object]]:
    """The labels of each column of reports: all that its study lists, or that came."""
    return {
        str(name): list(column.cat.categories if hasattr(column, "cat") else column.unique())
        for name, column in frame.items()
        if not pd.api.types.is_numeric_dtype(column)
    }


def levels_among(analysis: Assembled, by: str | None) -> list[str]:
    """The census's columns whose values are levels: of groups, of factors, of `by`, and labels of reports."""
    frame = analysis.cells.frame
    labels = [str(name) for name, column in frame.items() if not pd.api.types.is_numeric_dtype(column)]
    named = levels_in(analysis.formula, list(map(str, frame.columns)))
    return [*labels, *named, *([by] if by is not None else [])]


def refuse_beyond_bounds(
    census: pd.DataFrame, counts: Values, bounds: Mapping[str, tuple[float, float]]
) -> None:
    """Raises InputError for numbers of people whom the study does not ask, such as codes for ages."""
    for name, (low, high) in bounds.items():
        if name not in census.columns or not pd.api.types.is_numeric_dtype(census[name]):
            continue
        values = census[name].to_numpy(np.float64)[counts > 0]
        odd = values[(values < low) | (values > high)]
        if len(odd):
            raise InputError(
                f"the census: {name} is {level_text(odd.min())} to {level_text(odd.max())} in "
                f"{len(odd):,} of {counted(len(values), 'row')}, and the study lists {level_text(low)} to "
                f"{level_text(high)} alone: write it in the study's unit, or leave out these people, whom "
                "nobody asked",
                code="census.beyond_bounds",
            )


def in_kind_of(census: pd.Series, table: pd.Series, name: str) -> pd.Series:
    """A census column in the kind of the reports'. Raises InputError for what is none of its values."""
    numbers = pd.api.types.is_numeric_dtype(census)
    if isinstance(table.dtype, pd.CategoricalDtype):
        # A file's years, and codes such as 01, are numbers; a wave's or a choice's are labels.
        labels = as_labels(census, list(table.cat.categories), f"the census: {name}")
        odd = sorted(set(labels) - set(table.cat.categories))
        refuse_other_spelling(name, odd, list(map(str, table.cat.categories)))
        if odd:
            raise InputError(
                f"the census: {name} has {odd[0]!r}, which is none of its values", code="census.unknown_value"
            )
        return labels.astype(table.dtype)
    if pd.api.types.is_numeric_dtype(table):
        if not numbers:
            raise InputError(
                f"the census: {name} must hold numbers, as it does in the reports", code="census.not_numbers"
            )
        return census
    return census.map(level_text) if numbers and not pd.api.types.is_bool_dtype(census) else census


def notes_of(census: pd.DataFrame, counts: Values, asked: pd.DataFrame, reports: Codes) -> Iterator[str]:
    """What looks like a slip in its rows and counts. asked: cells of public columns, of so many reports."""
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
    if counts.sum() < reports.sum():
        yield (
            f"the census counts {counts.sum():,.6g} people, fewer than the {reports.sum():,} that reports "
            "came from: its totals are of so few"
        )
    else:
        yield from _fewer(census, counts, asked, reports)


def _fewer(census: pd.DataFrame, counts: Values, asked: pd.DataFrame, reports: Codes) -> Iterator[str]:
    """A note for each column of labels of which the census counts too few people of some level."""
    for name in labels_of(asked):
        people = pd.Series(counts).groupby(census[name].map(level_text).to_numpy()).sum()
        came = pd.Series(reports).groupby(asked[name].map(level_text).to_numpy()).sum()
        few = [level for level, many in came.items() if 0 < people.get(level, 0) < many]
        if few:
            more = f" (and too few of {counted(len(few) - 1, 'more level')} of it)" if few[1:] else ""
            yield (
                f"the census counts {people[few[0]]:,.6g} people of {name} {few[0]}, fewer than the "
                f"{came[few[0]]:,} that reports came from{more}: weights and totals there are of so few"
            )
