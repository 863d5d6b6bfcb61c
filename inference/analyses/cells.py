"""Count equal reports together: cells of public columns, and patterns of a cell and its reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from inference.analyses.table import Codes, Table, Values
from ldp_client.documents.errors import InputError
from ldp_client.words.text import counted

# Where a number is cut: at its middle, and in the tails, which a wrong law misses.
CUTS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
# If patterns are nearly as many as reports, reports are taken one by one.
AS_ROWS = 0.9


@dataclass(frozen=True)
class Cells:
    """Hold the data that the likelihood takes.

    frame: (cells, public columns). sizes: (cells,) reports in each. cell: (patterns,) each pattern's cell.
    counts: (patterns,) reports of each. reports: {private column: (patterns,) its likelihood vector}.
    outcome: (patterns,) values of a public outcome, as in its column. form: the kind of counting, in words.
    """

    frame: pd.DataFrame
    sizes: Codes
    cell: Codes
    counts: Codes
    reports: dict[str, Codes]
    outcome: pd.Series | None
    form: str


def cells_of(
    table: Table, public: Sequence[str], private: Sequence[str], outcome: str | None = None
) -> Cells:
    """Count a table's reports by these columns.

    outcome: a public column that is no predictor. Raises InputError if a public column has blanks.
    """
    for name in [*public, *([outcome] if outcome else [])]:
        refuse_blanks(table.public[name], name)
    cell, frame = distinct_rows(table.public[list(public)])
    keys = {"cell": cell, **{name: table.private[name].codes for name in private}}
    if outcome is not None:
        keys["outcome"] = pd.factorize(table.public[outcome])[0].astype(np.int64)
    pattern, rows = distinct_rows(pd.DataFrame(keys))
    counts = np.bincount(pattern, table.counts, len(rows)).astype(np.int64)
    first = np.zeros(len(rows), np.int64)
    first[pattern[::-1]] = np.arange(len(pattern))[::-1]
    form = f"{counted(table.n, 'report')} counted as {len(rows):,} patterns: the cost is that of the patterns"
    if len(rows) > AS_ROWS * table.n:
        form = (
            f"{counted(table.n, 'report')} taken one by one: nearly all differ, and the cost grows with them"
        )
    return Cells(
        frame,
        np.bincount(cell, table.counts, len(frame)).astype(np.int64),
        rows["cell"].to_numpy(),
        counts,
        {name: rows[name].to_numpy() for name in private},
        table.public[outcome].iloc[first].reset_index(drop=True) if outcome is not None else None,
        form,
    )


def distinct_rows(frame: pd.DataFrame) -> tuple[Codes, pd.DataFrame]:
    """Return each row's index among the distinct rows, and these, sorted. Without columns there is one."""
    if not len(frame.columns):
        return np.zeros(len(frame), np.int64), pd.DataFrame(index=range(1))
    groups = frame.groupby(list(frame.columns), sort=True, observed=True, dropna=False)
    codes = groups.ngroup().to_numpy().astype(np.int64)
    first = np.zeros(int(codes.max()) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, frame.iloc[first].reset_index(drop=True)


def refuse_blanks(column: pd.Series, name: str) -> None:
    """Raise InputError that names the first blank row."""
    blank = np.flatnonzero(column.isna())
    if len(blank):
        raise InputError(
            f"column {name} is blank in {counted(len(blank), 'row')} (the first is row {blank[0] + 1}): fill "
            "them in, give them a separate level, or remove those rows from the file",
            code="table.blank_cells",
        )


def level_text(level: object) -> str:
    """Return a level as readable text: a whole number without a decimal point."""
    return str(int(level)) if isinstance(level, float) and level.is_integer() else str(level)


def cuts_of(values: Values, counts: Codes) -> Values:
    """Return cuts that divide numbers with these counts into parts, halfway between observed values."""
    places, codes = np.unique(values, return_inverse=True)
    shares = np.cumsum(np.bincount(codes.ravel(), counts)) / counts.sum()
    middles = (places[1:] + places[:-1]) / 2
    if not len(middles):
        return places
    return np.unique(middles[np.minimum(np.searchsorted(shares, CUTS), len(middles) - 1)])
