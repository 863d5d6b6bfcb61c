"""Handle cells without a value, and labels that are spelt like blanks, such as NA for Namibia."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

# Spellings of a missing cell. "none" is absent because it is a common answer.
BLANK_CELLS = ("", "na", "n/a", "nan", "null")
# The frame attribute that keeps, as written, each column with such a spelling. The file's reader cannot
# know which spellings are labels: only the study or design does.
WRITTEN = "ldpkit.written"
# {column: its labels}.
Labels = Mapping[str, Collection[object]]


@dataclass(frozen=True)
class Written:
    """Hold a column's cells as written. pandas would copy a plain list with each copy of the frame."""

    cells: tuple[Any, ...]

    def __deepcopy__(self, _memo: object) -> Written:
        return self


def spelt_as_blanks(labels: Iterable[object]) -> frozenset[str]:
    """Return the spellings of a blank, in lower case, that are labels. An empty cell is never a label."""
    texts = {label for label in labels if isinstance(label, str)}
    return frozenset({text.strip().lower() for text in texts} & set(BLANK_CELLS) - {""})


def is_labelled(name: str, labels: Labels, cells: Iterable[object]) -> bool:
    """Return True if one of a column's cells is a label spelt as a blank. Such a column is not numeric."""
    return bool(spelt_as_blanks(labels.get(name, ())) & spelt_as_blanks(cells))


def cell_of(cell: str, kept: Collection[str] = ()) -> str | None:
    """Return a cell without spaces around it, or None if it is blank.

    kept: spellings of a blank that are labels here. In other capitals the cell may be a
    misspelt label, so it is not blank.
    """
    text = cell.strip()
    word = text.lower()
    return None if word in BLANK_CELLS and word not in kept else text


def written(columns: Mapping[str, Sequence[Any]]) -> dict[str, Written]:
    """Return the cells of each column that has a spelling of a blank, for `as_listed`."""
    return {name: Written(tuple(cells)) for name, cells in columns.items() if spelt_as_blanks(cells)}


def as_listed(frame: pd.DataFrame, labels: Labels, also: Sequence[str] = ()) -> pd.DataFrame:
    """Return a file's frame in which cells such as NA are labels if listed as such, and blank otherwise.

    also: the frame's attrs that describe numbers. They are cleared for such a column.
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
    """Return advice if a reader may have taken a column's label for a blank, or "" if it cannot have.

    If the column contains the label, it cannot have: a reader treats all such cells as blank, or none.
    """
    spelt = [label for label in labels if spelt_as_blanks([label])] if column.isna().any() else []
    cells = {cell for cell in column if isinstance(cell, str)} if spelt else set()
    lost = [label for label in spelt if label not in cells]
    if not lost:
        return ""
    return (
        f"; {name} has the label {lost[0]}, which some readers treat as blank: if the file has it, "
        "read it unchanged (pandas: keep_default_na=False)"
    )
