"""Columns of numbers whose point or comma may be a mark between thousands, as they are read from text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

from ldp_client.documents.errors import InputError
from ldp_client.files.marks import TwoReadings

# Where a frame keeps which of its columns were written so, with one number of each.
MARKED = "ldpkit.marked"
# Cells that are missing; "none" is left alone: it is a common answer.
BLANK_CELLS = ("", "na", "n/a", "nan", "null")


def marked(columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """A number of each column that may have marks between thousands."""
    found = {name: _marked(cells) for name, cells in columns.items()}
    return {name: one for name, one in found.items() if one}


def _marked(cells: Iterable[str]) -> str:
    readings = TwoReadings(BLANK_CELLS)
    readings.look_at(cells)
    return readings.first


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
