"""Read a table's public columns for an analysis: numbers as float64, or levels."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

import numpy as np
import pandas as pd

from inference.analyses.table import Values, level_text
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted
from summaries.people.codebook import number_in

_NUMERAL = re.compile(r"[+-]?\d+([.,]\d+)?")
# From here on, one float64 may represent two whole numbers.
INEXACT = 2**53
# From this share of numbers on, a word in a column is a mistake.
MIXED = 0.5
# The column of a census with the number of people in each row.
COUNT = "count"
# More than all people on earth; sums of squares stay finite.
MOST_WEIGHT = 1e12


def as_taken(frame: pd.DataFrame, names: Sequence[str], lead: str = "") -> pd.DataFrame:
    """Return the frame with these columns' numbers as float64: smaller types overflow in a formula.

    Raises InputError for cells that are neither numbers nor levels, for a column of numbers with some words,
    and for numbers that float64 cannot distinguish.
    """
    return frame.assign(**{name: _as_taken(frame[name], f"{lead}column {name}") for name in names})


def _as_taken(column: pd.Series, where: str) -> pd.Series:
    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(kind):
        return column
    # 1. Words are levels.
    is_number = pd.api.types.is_numeric_dtype(kind)
    cells = [] if is_number else column[column.notna()].tolist()
    if not is_number and not (cells and all(isinstance(cell, int | float | Decimal) for cell in cells)):
        if not all(isinstance(cell, str) for cell in cells):
            raise InputError(
                f"{where} holds dates, times, lists or words among numbers: write numbers, or text for "
                "levels",
                code="table.holds_other_values",
            )
        numbers = np.asarray([number_in(cell) is not None for cell in cells])
        if len(cells) and MIXED < numbers.mean() < 1:
            odd = int(np.flatnonzero(column.isin([cells[int(np.argmin(numbers))]]))[0])
            raise InputError(
                f"{where} holds numbers, but in row {column.index[odd]} {column.iloc[odd]!r}: leave such "
                "cells blank, or write all its values as words if they are levels",
                code="table.numbers_and_words",
            )
        return column
    # 2. Numbers become float64, unless it would make some equal.
    numbers = column.map(float, na_action="ignore") if cells else column
    found = numbers.to_numpy(np.float64, na_value=np.nan)
    large = np.flatnonzero(np.isfinite(found) & (np.abs(found) >= INEXACT))
    if len(large):
        raise InputError(
            f"{where} has numbers with too many digits to distinguish, such as {found[large[0]]:.0f}. If "
            "they are codes, put a letter before each. Otherwise use a larger unit",
            code="table.too_many_digits",
        )
    return pd.Series(found, index=column.index, name=column.name)


def is_number(column: pd.Series) -> bool:
    """Return True for a column of numbers, which truth values are not."""
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def refuse_blanks(column: pd.Series, name: str) -> None:
    """Raise InputError that names the first blank row."""
    blank = np.flatnonzero(column.isna())
    if len(blank):
        raise InputError(
            f"column {name} is blank in {counted(len(blank), 'row')} (the first is row {blank[0] + 1}): fill "
            "them in, give them a separate level, or remove those rows from the file",
            code="table.blank_cells",
        )


def positive(column: pd.Series, name: str, least: float = 1 / MOST_WEIGHT) -> Values:
    """Return a column of weights. Raises InputError unless all are between `least` and MOST_WEIGHT."""
    if not pd.api.types.is_numeric_dtype(column):
        problem = "must hold numbers: write 1234, not 1,234"
        raise InputError(f"{name} {problem}", code="weights.not_numbers")
    values = column.to_numpy(np.float64)
    if least > 0 and (values == 0).any():
        raise InputError(
            f"{name} is 0 in row {int(np.argmax(values == 0)) + 1}: remove the rows of weight 0, as they "
            "represent nobody",
            code="weights.zero",
        )
    good = np.isfinite(values) & (values >= least) & (values <= MOST_WEIGHT)
    if not good.all():
        raise InputError(
            f"{name} must be {'positive' if least > 0 else '0 or more'}, and at most {MOST_WEIGHT:.0e}: look "
            f"at row {int(np.argmin(good)) + 1}",
            code="weights.not_positive",
        )
    return values


def notes_of(frame: pd.DataFrame, names: Sequence[str]) -> Iterator[str]:
    """Yield notes on levels of text that may be numbers."""
    for name in names:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_numeric_dtype(column):
            continue
        levels = [level_text(level) for level in pd.unique(column.dropna())]
        if len(levels) > 1 and all(map(_NUMERAL.fullmatch, levels)):
            yield (
                f"{name} holds numbers as text: each of its {len(levels):,} values is taken as a level; "
                "make it a column of numbers if it counts or measures something"
            )
