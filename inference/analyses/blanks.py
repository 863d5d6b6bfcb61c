"""Cells that hold no value, and labels that are spelt as if they did not, such as NA for Namibia."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

# Cells that are missing; "none" is left alone: it is a common answer.
BLANK_CELLS = ("", "na", "n/a", "nan", "null")
# Where a frame keeps the columns in which one of these spellings stands, as they were written: what is a
# label there only its study or design says, which a file's reader does not know.
WRITTEN = "ldpkit.written"
# {column: the labels that it has}.
Labels = Mapping[str, Collection[object]]


@dataclass(frozen=True)
class Written:
    """A column's cells as they were written. Not copied with each copy of its frame, as pandas would."""

    cells: tuple[Any, ...]

    def __deepcopy__(self, _memo: object) -> Written:
        return self


def spelt_as_blanks(labels: Iterable[object]) -> frozenset[str]:
    """Which of the spellings of a blank, in small letters, are labels. An empty cell is none."""
    texts = {label for label in labels if isinstance(label, str)}
    return frozenset({text.strip().lower() for text in texts} & set(BLANK_CELLS) - {""})


def is_labelled(name: str, labels: Labels, cells: Iterable[object]) -> bool:
    """Whether any of a column's cells is spelt as a blank and is a label: then it is no column of numbers."""
    return bool(spelt_as_blanks(labels.get(name, ())) & spelt_as_blanks(cells))


def cell_of(cell: str, kept: Collection[str] = ()) -> str | None:
    """A cell without spaces around it, None where it is blank.

    kept: spellings of a blank that are labels here; in other capitals the cell may be misspelt, and no blank.
    """
    text = cell.strip()
    word = text.lower()
    return None if word in BLANK_CELLS and word not in kept else text


def written(columns: Mapping[str, Sequence[Any]]) -> dict[str, Written]:
    """Of each column in which a blank is spelt out its cells, for `as_listed`."""
    return {name: Written(tuple(cells)) for name, cells in columns.items() if spelt_as_blanks(cells)}


def as_listed(frame: pd.DataFrame, labels: Labels, also: Sequence[str] = ()) -> pd.DataFrame:
    """A file's frame whose cells are labels where they are spelt like one, such as NA, and blank elsewhere.

    also: of the frame's attrs those that say something of numbers, of which such a column has none.
    """
    found: dict[str, pd.Series] = {}
    for name, one in frame.attrs.get(WRITTEN, {}).items():
        if is_labelled(name, labels, one.cells):
            found[name] = _with_labels(frame[name], one.cells, spelt_as_blanks(labels[name]))
    listed = frame.assign(**found)
    listed.attrs = {name: value for name, value in frame.attrs.items() if name != WRITTEN}
    for name in also:
        known = listed.attrs.get(name, {})
        listed.attrs[name] = {column: said for column, said in known.items() if column not in found}
    return listed


def _with_labels(column: pd.Series, cells: Sequence[Any], kept: Collection[str]) -> pd.Series:
    texts = [cell_of(cell, kept) if isinstance(cell, str) else cell for cell in cells]
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return pd.Series(texts, index=column.index, dtype=object)
    levels = dict.fromkeys([*column.cat.categories, *(one for one in texts if isinstance(one, str))])
    return pd.Series(
        pd.Categorical(texts, categories=list(levels), ordered=column.cat.ordered), index=column.index
    )


def taken_for_blank(column: pd.Series, labels: Iterable[object], name: str) -> str:
    """What to do where a reader may have taken a column's label for a blank; "" where it cannot have.

    It cannot where the column has the label: a reader takes all for blank, or none.
    """
    spelt = [label for label in labels if spelt_as_blanks([label])] if column.isna().any() else []
    cells = {cell for cell in column if isinstance(cell, str)} if spelt else set()
    lost = [label for label in spelt if label not in cells]
    if not lost:
        return ""
    return (
        f"; {name} has the label {lost[0]}, which some readers take for a blank: where the file says so, "
        "read it as it stands (pandas: keep_default_na=False)"
    )
