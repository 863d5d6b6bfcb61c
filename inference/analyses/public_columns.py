"""Read a table's public columns for an analysis: numbers, levels, and levels that look alike."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from unicodedata import category, normalize

import numpy as np
import pandas as pd

from inference.analyses.marks import two_codes
from inference.analyses.varying import level_text
from ldp_client.documents.errors import InputError

_NUMERAL = re.compile(r"[+-]?\d+([.,]\d+)?")
_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
# With a typographic minus, marks between thousands, or a comma. Read as text, each would be a level.
_LIKE_A_NUMBER = re.compile(
    r"([+-]|[-\u2010-\u2015\u2212\ufe58\ufe63\uff0d]\s*)?(\d+|\d{1,3}([\s'\u2019\u02bc_]\d{3})+)([.,]\d+)?"
)
# Words for a missing cell, which may also be labels, such as NA for Namibia.
_MISSING = ("na", "n/a", "nan", "null")
# {column: its labels}.
Labels = Mapping[str, Collection[object]]
# From here on, one float64 may represent two whole numbers.
INEXACT = 2**53
# Types that cannot be levels, because their equality is undefined.
_NO_LEVELS = (list, dict, set, tuple, np.ndarray)


def as_taken(
    frame: pd.DataFrame, names: Sequence[str], lead: str = "", labels: Labels | None = None
) -> pd.DataFrame:
    """Return the frame with these columns' numbers as float64: smaller types overflow in a formula.

    labels: labels that columns may have, in any spelling. Raises InputError for cells that are neither
    numbers nor levels, and for numbers that float64 cannot distinguish.
    """
    known = labels or {}
    try:
        return frame.assign(**{name: _as_taken(frame[name], name, known.get(name, ())) for name in names})
    except InputError as error:
        raise InputError(f"{lead}{error}", code="table.columns_invalid") from None


def _as_taken(column: pd.Series, name: str, labels: Collection[object]) -> pd.Series:
    if isinstance(column.dtype, pd.CategoricalDtype):
        _refuse_missing(column.cat.categories, name, labels)
    if isinstance(column.dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(column):
        return column
    if pd.api.types.is_numeric_dtype(column):
        return _as_numbers(column, name)
    cells = [cell for cell in column.astype(object) if not _is_missing(cell)]
    _refuse_times(cells, name)
    odd = next((cell for cell in cells if isinstance(cell, _NO_LEVELS)), None)
    if odd is not None:
        raise InputError(
            f"column {name} holds lists or records: give each value a separate column",
            code="table.nested_values",
        )
    if cells and all(isinstance(cell, Decimal) for cell in cells):
        return _as_numbers(column, name)
    _refuse_missing(cells, name, labels)
    _refuse_marks(cells, name, labels)
    _refuse_zeros(cells, name, labels)
    _refuse_one_text(cells, name)
    return column


def _is_missing(cell: object) -> bool:
    return cell is None or cell is pd.NaT or cell is pd.NA or (isinstance(cell, float) and cell != cell)


def _as_numbers(column: pd.Series, name: str) -> pd.Series:
    """Return the column in float64. Raises InputError for numbers so large that neighbours would be equal."""
    numbers = column.astype(object).map(float, na_action="ignore") if column.dtype == object else column
    found = numbers.to_numpy(np.float64, na_value=np.nan)
    large = np.flatnonzero(np.isfinite(found) & (np.abs(found) >= INEXACT))
    if len(large):
        cell = column.iloc[large[0]]
        written = f"{cell:.0f}" if isinstance(cell, float) else str(cell)
        raise InputError(
            f"column {name} has numbers with too many digits to distinguish, such as {written}. "
            f"If they are codes, put a letter before each (c{written}). Otherwise use "
            "a larger unit",
            code="table.too_many_digits",
        )
    return pd.Series(found, index=column.index, name=column.name)


def _refuse_times(cells: Sequence[object], name: str) -> None:
    """Raise InputError for durations, dates and times of day, whose unit is undefined."""
    if any(isinstance(cell, timedelta | np.timedelta64) for cell in cells):
        raise InputError(
            f"column {name} holds durations: write them as numbers, of days or of hours",
            code="table.holds_durations",
        )
    if any(isinstance(cell, date | time | pd.Period | np.datetime64) for cell in cells):
        raise InputError(
            f"column {name} holds dates or times: write them as numbers, such as days since the first or, if "
            "they are levels, as text, such as 2026-03",
            code="table.holds_dates",
        )


def _refuse_missing(cells: Iterable[object], name: str, labels: Collection[object]) -> None:
    """Raise InputError for a word for a missing cell, unless the study or design lists it as a label."""
    for cell in cells:
        if isinstance(cell, str) and cell.strip().lower() in _MISSING and cell not in labels:
            raise InputError(
                f"column {name} has {cell!r}, missing or a label: leave it empty, or write another word",
                code="table.missing_or_label",
            )


def _refuse_marks(cells: Sequence[object], name: str, labels: Collection[object]) -> None:
    """Raise InputError if a typographic mark turned the numbers of a column into text.

    labels: of a study. A published study's labels are permanent, so their spelling cannot be corrected.
    """
    texts = [cell.strip() for cell in cells if isinstance(cell, str)]
    if len(texts) < len(cells) or not all(map(_LIKE_A_NUMBER.fullmatch, texts)):
        return
    if odd := next((cell for cell in texts if not _NUMBER.fullmatch(cell) and cell not in labels), ""):
        raise InputError(
            f"column {name} has numbers such as {odd!a}, which would be levels: write digits, a point and - "
            f"alone or, if they are codes, a letter first (c{odd})",
            code="table.number_as_text",
        )


def plain_whole(cell: str) -> str:
    """Return a whole number without leading zeros."""
    return re.sub("^(-?)0+", r"\1", cell)


def _refuse_zeros(cells: Sequence[object], name: str, labels: Collection[object]) -> None:
    """Raise InputError for numerals that differ only in leading zeros, except labels."""
    if not all(isinstance(cell, str) and _WHOLE.fullmatch(cell) for cell in cells):
        return
    seen: dict[str, str] = {}
    for cell in map(str, cells):
        first = seen.setdefault(plain_whole(cell), cell)
        if first != cell and not (first in labels and cell in labels):
            raise InputError(two_codes(name, first, cell), code="table.two_codes_one_number")


def as_labels(column: pd.Series, labels: Sequence[str], lead: str) -> pd.Series:
    """Return a column's values as text; a number becomes the label with its value, such as 01 or 0.10.

    Raises InputError for a number that matches several labels.
    """
    texts = column.map(level_text)
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return texts
    known: dict[str, list[str]] = {}
    for label in filter(_NUMERAL.fullmatch, labels):
        if "," not in label:
            known.setdefault(level_text(float(label)), []).append(label)
    for text in dict.fromkeys(texts):
        # Whole numbers mostly have no leading zeros, so their text is the label.
        if len(known.get(text, ())) > 1 and not text.isdecimal():
            which = " and ".join(known[text])
            raise InputError(
                f"{lead} has the number {text}, which matches {which}: give it as text, in Parquet",
                code="table.number_of_several_labels",
            )
    return texts.replace({text: some[0] for text, some in known.items() if len(some) == 1})


def _refuse_one_text(cells: Sequence[object], name: str) -> None:
    """Raise InputError if a number and a label have the same text, and so would be two levels of one name."""
    kinds: dict[str, type] = {}
    for cell in cells:
        kind = kinds.setdefault(level_text(cell), type(cell))
        if (kind is str) != isinstance(cell, str):
            raise InputError(
                f"column {name} has {level_text(cell)} both as a number and as a label: make them alike",
                code="table.number_and_label",
            )


def notes_of(frame: pd.DataFrame, names: Sequence[str]) -> Iterator[str]:
    """Yield notes on levels: numerals that are text, and levels that look alike."""
    for name in names:
        column = frame[name]
        if not (column.dtype == object or isinstance(column.dtype, pd.StringDtype | pd.CategoricalDtype)):
            continue
        levels = [str(level) for level in pd.unique(column.dropna())]
        as_text = not isinstance(column.dtype, pd.CategoricalDtype) and len(levels) > 1
        if as_text and all(_NUMERAL.fullmatch(level) for level in levels):
            yield (
                f"{name} holds numbers as text: each of its {len(levels):,} values is taken as a level; "
                "make it a column of numbers if it counts or measures something"
            )
        yield from look_alike(name, levels)


def look_alike(name: str, levels: Sequence[str]) -> Iterator[str]:
    """Yield a note on levels that differ only in capitals, spaces, or invisible characters."""
    seen: dict[str, str] = {}
    for level in levels:
        first = seen.setdefault(looks(level), level)
        if first != level:
            yield (
                f"{name} has the levels {first!a} and {level!a}, which look alike but count as "
                "two: write both the same way if they are the same"
            )


def looks(level: str) -> str:
    """Return a level's appearance: without case, spaces, and invisible characters (Unicode's format)."""
    shown = "".join(one for one in normalize("NFKC", level) if category(one) != "Cf")
    return " ".join(shown.split()).casefold()
