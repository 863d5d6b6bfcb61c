"""Numbers whose point or comma may be a mark between thousands: a column of them has two readings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from ldp_client.documents.errors import InputError

# Where a frame keeps which of its columns were written so, with one number of each.
MARKED = "ldpkit.marked"
# Cells that are missing; "none" is left alone: it is a common answer.
BLANK_CELLS = ("", "na", "n/a", "nan", "null")
_MARKED = re.compile(r"[+-]?[1-9]\d{0,2}([.,]\d{3})+")
_PLAIN = re.compile(r"[+-]?\d{1,3}")


def marked(columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """A number of each column that may have marks between thousands."""
    found = {name: _marked(cell.strip() for cell in cells) for name, cells in columns.items()}
    return {name: one for name, one in found.items() if one}


def _marked(cells: Iterable[str]) -> str:
    """The first number with a mark, where all with one have exactly three digits behind it.

    Others have no more than three: whoever marks thousands marks all of them.
    """
    first = ""
    for cell in cells:
        if cell.lower() in BLANK_CELLS or _PLAIN.fullmatch(cell):
            continue
        if not _MARKED.fullmatch(cell):
            return ""
        first = first or cell
    return first


def refuse_marked(frame: pd.DataFrame, names: Iterable[str], lead: str = "") -> None:
    """Raises InputError for a column of these that was read from text with two readings."""
    written: Mapping[str, str] = frame.attrs.get(MARKED, {})
    for name in names:
        if name in written:
            one = written[name]
            whole = re.sub("[.,]", "", one)
            raise InputError(
                f"{lead}column {name} has numbers such as {one}, each with exactly three digits behind its "
                f"mark, which may be {whole} or not: write {whole}, or a decimal point with other digits "
                f"behind it ({one.replace(',', '.')}0)"
            )
