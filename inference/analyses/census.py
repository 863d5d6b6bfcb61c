"""Compare the levels of a census with those of the reports, exactly."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from inference.analyses.formula import levels_in
from inference.analyses.program import Assembled
from inference.analyses.public_columns import as_labels
from inference.analyses.table import Values
from inference.analyses.varying import level_text
from inference.results.diagnostics import listed
from ldp_client.documents.errors import InputError


def unseen(census: pd.DataFrame, analysis: Assembled) -> str:
    """Describe the levels of the census that no report has; "" if there are none."""
    known = analysis.cells.frame
    for name in map(str, known.columns):
        old = set(known[name].map(level_text))
        new = sorted(set(census[name].map(level_text)) - old)
        if new and not pd.api.types.is_numeric_dtype(known[name]):
            return (
                f"the census: {name} has {listed([repr(one) for one in new])}, levels without reports. "
                f"Remove those people, or write (1 | {name}) instead of "
                f"{name}: it draws these levels from the groups' law"
            )
    return ""


def labels_of(frame: pd.DataFrame) -> dict[str, list[object]]:
    """Return the labels of each column of reports: all labels that its study lists or that occur."""
    return {
        str(name): list(column.cat.categories if hasattr(column, "cat") else column.unique())
        for name, column in frame.items()
        if not pd.api.types.is_numeric_dtype(column)
    }


def levels_among(analysis: Assembled, by: str | None) -> list[str]:
    """Return the census columns whose values are levels: groups, factors, `by`, and labels of reports."""
    frame = analysis.cells.frame
    labels = [str(name) for name, column in frame.items() if not pd.api.types.is_numeric_dtype(column)]
    named = levels_in(analysis.formula, list(map(str, frame.columns)))
    return [*labels, *named, *([by] if by is not None else [])]


def uncounted(analysis: Assembled, census: pd.DataFrame, counts: Values) -> Iterator[tuple[str, str]]:
    """Yield each column with levels that reports have but the census does not count, and a description."""
    sizes, named = analysis.cells.sizes, levels_among(analysis, None)
    people = census[counts > 0]
    for name, column in analysis.cells.frame.items():
        if name not in named and not pd.api.types.is_bool_dtype(column):
            continue
        levels = _texts(column)
        gone = ~levels.isin(_texts(people[name]).unique()).to_numpy()
        if sizes[gone].any():
            yield (
                str(name),
                f"{int(sizes[gone].sum()):,} of {int(sizes.sum()):,} reports have "
                f"{name} = {listed(list(dict.fromkeys(levels[gone])))}, which the census does not count",
            )


def mostly_beyond(analysis: Assembled, census: pd.DataFrame, counts: Values) -> Iterator[str]:
    """Yield a note for each number that is outside the reports' range for most people of the census."""
    levels = levels_among(analysis, None)
    for name, column in analysis.cells.frame.items():
        if name in levels or not pd.api.types.is_numeric_dtype(column):
            continue
        low, high = float(column.min()), float(column.max())
        beyond = float(counts[~census[name].between(low, high).to_numpy()].sum())
        if beyond > counts.sum() / 2:
            yield (
                f"{beyond:,.0f} of {counts.sum():,.0f} people of the census have {name} beyond all reports "
                f"({low:g} to {high:g}): their estimates extrapolate the formula"
            )


def _texts(column: pd.Series) -> pd.Series:
    """Return a column's levels as text, with yes as 1 and no as 0."""
    numbers = column.astype(float) if pd.api.types.is_bool_dtype(column) else column
    return numbers.map(level_text).astype(object)


def in_kind_of(census: pd.Series, table: pd.Series, name: str) -> pd.Series:
    """Return a census column in the kind of the reports' column. Raises InputError for an unknown value."""
    numbers = pd.api.types.is_numeric_dtype(census)
    if isinstance(table.dtype, pd.CategoricalDtype):
        # A file's years, and codes such as 01, are numbers. A wave's or a choice's are labels.
        labels = as_labels(census, list(table.cat.categories), f"the census: {name}")
        odd = sorted(set(labels) - set(table.cat.categories))
        if odd:
            raise InputError(
                f"the census: {name} has {listed([repr(one) for one in odd])}, not among its values",
                code="census.unknown_value",
            )
        return labels.astype(table.dtype)
    if pd.api.types.is_numeric_dtype(table):
        if not numbers:
            raise InputError(
                f"the census: {name} must hold numbers, as it does in the reports", code="census.not_numbers"
            )
        return census
    return census.map(level_text) if numbers and not pd.api.types.is_bool_dtype(census) else census
