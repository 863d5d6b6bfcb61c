"""Public columns of a table as an analysis takes them: numbers, levels, and levels that look alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from unicodedata import category, normalize

import numpy as np
import pandas as pd

from inference.analyses.varying import level_text
from ldp_client.documents.errors import InputError
from ldp_client.files.answers import MARKED_THOUSANDS

_COMMA = re.compile(r"[+-]?\d+,\d+")
_NUMERAL = re.compile(r"[+-]?\d+([.,]\d+)?")
_MARK = re.compile(r"[^\d.,+-]")
# What no level can be: nothing says which of them are one.
_NO_LEVELS = (list, dict, set, tuple, np.ndarray)


def as_taken(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The frame with exact decimals as numbers. Raises InputError for what is neither number nor level."""
    return frame.assign(**{name: _as_taken(frame[name], name) for name in names})


def _as_taken(column: pd.Series, name: str) -> pd.Series:
    if pd.api.types.is_timedelta64_dtype(column):
        raise InputError(f"column {name} holds durations: write them as numbers, of days or of hours")
    # Text is of type object or, from pandas itself, of a string type.
    if column.dtype != object and not isinstance(column.dtype, pd.StringDtype):
        return column
    cells = [cell for cell in column if not (cell is None or cell is pd.NaT or cell is pd.NA)]
    odd = next((cell for cell in cells if isinstance(cell, _NO_LEVELS)), None)
    if odd is not None:
        raise InputError(f"column {name} holds lists or records: give each value a column of its own")
    if cells and all(isinstance(cell, Decimal) for cell in cells):
        return column.astype(np.float64)
    _refuse_marks(cells, name)
    _refuse_one_text(cells, name)
    return column


def _refuse_marks(cells: Sequence[object], name: str) -> None:
    """Raises InputError for numbers that a mark makes text of, in a column of nothing else."""
    texts = [cell.strip() for cell in cells if isinstance(cell, str)]
    if len(texts) < len(cells) or not all(_NUMERAL.fullmatch(cell) or _is_marked(cell) for cell in texts):
        return
    if spaced := next(filter(_is_marked, texts), ""):
        raise InputError(
            f"column {name} has numbers with marks between thousands, such as {spaced!a}, which would each "
            f"be a level: write {re.sub(_MARK, '', spaced)}"
        )
    if comma := next(filter(_COMMA.fullmatch, texts), ""):
        raise InputError(
            f"column {name} has numbers with a comma, such as {comma}, which would each be a level: write "
            f"{comma.replace(',', '.')}; where they are codes of a choice and no numbers, put a letter "
            f"before each (c{comma})"
        )


def _is_marked(cell: str) -> bool:
    return MARKED_THOUSANDS.fullmatch(cell) is not None


def _refuse_one_text(cells: Sequence[object], name: str) -> None:
    """Raises InputError where a number and a label read alike, as two levels of one name."""
    kinds: dict[str, type] = {}
    for cell in cells:
        kind = kinds.setdefault(level_text(cell), type(cell))
        if (kind is str) != isinstance(cell, str):
            raise InputError(
                f"column {name} has {level_text(cell)} both as a number and as a label: make them alike"
            )


def notes_of(frame: pd.DataFrame, names: Sequence[str]) -> Iterator[str]:
    """What a reader must know of levels: numerals that are text, and levels that look alike."""
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
        yield from _alike(name, levels)


def _alike(name: str, levels: Sequence[str]) -> Iterator[str]:
    """Levels that differ in capitals, blanks, or marks that do not show."""
    seen: dict[str, str] = {}
    for level in levels:
        first = seen.setdefault(_looks(level), level)
        if first != level:
            yield (
                f"{name} has the levels {first!a} and {level!a}, which look alike and are taken as "
                "two: write both the same way if they are one"
            )


def _looks(level: str) -> str:
    """A level without what does not show (Unicode's format characters), capitals and blanks."""
    shown = "".join(one for one in normalize("NFKC", level) if category(one) != "Cf")
    return " ".join(shown.split()).casefold()
