"""The people of a planned analysis: the public columns of future participants, from a table or assumed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from inference.analyses.cells import distinct_rows, refuse_blanks
from inference.analyses.formula import known_column
from inference.analyses.population import COUNT
from inference.analyses.public_columns import as_taken, positive
from inference.analyses.table import Codes
from inference.analyses.varying import level_text
from ldp_client.documents.errors import InputError
from ldp_client.documents.public import PublicField

# A public number without a table is taken at so many places of its range, or fewer with other columns.
PLACES, FEWEST_PLACES = 25, 5
# Shares of people are whole numbers of this.
WHOLE = 10**9


@dataclass(frozen=True)
class People:
    """frame: distinct rows of public columns. shares: (rows,), whole numbers. words: their source."""

    frame: pd.DataFrame
    shares: Codes
    words: tuple[str, ...]

    def with_levels(self, name: str, levels: Sequence[Any]) -> People:
        """Repeat every row once for each value of a further column, which is to be summed over."""
        rows = np.repeat(np.arange(len(self.frame)), len(levels))
        frame = self.frame.loc[rows].reset_index(drop=True)
        frame[name] = pd.Categorical(list(levels) * len(self.frame), categories=list(levels))
        return People(frame, np.repeat(self.shares, len(levels)), self.words)


def people_of_table(known: pd.DataFrame, names: Sequence[str]) -> People:
    """Return distinct rows of these columns of a table; a column `count` is each row's number of people.

    Raises InputError for a missing column, for blanks, and for a table without people.
    """
    columns = [str(name) for name in known.columns]
    for name in names:
        known_column(name, columns, "the table of people: ")
        refuse_blanks(known[name], f"{name} of the table of people")
    weighted = COUNT in columns and COUNT not in names
    known = as_taken(known, [*names, *([COUNT] if weighted else [])], "the table of people: ")
    weights = np.ones(len(known))
    if weighted:
        refuse_blanks(known[COUNT], f"{COUNT} of the table of people")
        weights = positive(known[COUNT], f"{COUNT} of the table of people", 0.0)
    if not weights.sum():
        raise InputError("the table of people is empty", code="plan.table_without_people")
    codes, frame = distinct_rows(known[list(names)])
    found = np.bincount(codes, weights, len(frame))
    shares = np.rint(found / found.sum() * WHOLE).astype(np.int64)
    there = np.flatnonzero(shares)
    words = (f"{', '.join(names)}: as in the table of {weights.sum():,.0f} people",) if names else ()
    return People(frame.iloc[there].reset_index(drop=True), shares[there], words)


def as_the_study_says(found: People, fields: Sequence[PublicField]) -> People:
    """Return people whose columns are a study's fields. Raises InputError for a value outside a field."""
    frame = found.frame
    for one in fields:
        column = frame[one.id]
        if one.choices:
            labels = column.map(level_text).tolist()
            odd = [label for label in labels if label not in one.choices]
        else:
            numbers = pd.api.types.is_numeric_dtype(column)
            low, high = float(one.value(0)), float(one.value(one.size - 1))
            odd = [str(value) for value in column if not (numbers and low <= value <= high)]
        if odd:
            raise InputError(
                f"the table of people: {one.id} has {odd[0]!r}, which the study does not have",
                code="plan.unknown_public_value",
            )
        if one.choices:
            frame = frame.assign(**{one.id: pd.Categorical(labels, categories=list(one.choices))})
    return replace(found, frame=frame)


def uniform_people(fields: Sequence[PublicField], cells: int) -> People:
    """Return all combinations of public fields, equally likely, with numbers in few enough places."""
    labels = int(np.prod([len(one.choices) for one in fields if one.choices], dtype=np.int64))
    numbers = sum(not one.choices for one in fields)
    places = PLACES
    while places > FEWEST_PLACES and labels * places**numbers > cells:
        places -= 1
    values = [_values(one, places) for one in fields]
    rows = np.prod([float(len(one)) for one in values])
    if rows > max(cells, 1):
        raise InputError(
            f"the public fields have {rows:,.0f} combinations, which are too many to sum over: give a "
            "--table of people, or name fewer",
            code="plan.too_many_combinations",
        )
    both = list(product(*values))
    frame = pd.DataFrame(index=range(len(both)))
    for place, one in enumerate(fields):
        column = [row[place] for row in both]
        frame[one.id] = pd.Categorical(column, categories=list(one.choices)) if one.choices else column
    words = [
        f"{one.id}: {_range(one)}, each as likely (a --table of people says who they are)" for one in fields
    ]
    return People(frame, np.ones(len(frame), np.int64), tuple(words))


def _range(one: PublicField) -> str:
    return f"its {len(one.choices)} values" if one.choices else f"{one.value(0)} to {one.value(one.size - 1)}"


def _values(one: PublicField, places: int) -> list[Any]:
    """Return labels, or numbers; for too many numbers the middles of equal parts of the range."""
    if one.choices:
        return list(one.choices)
    if one.size <= places:
        return [float(one.value(place)) for place in range(one.size)]
    low, high = float(one.value(0)), float(one.value(one.size - 1))
    half = (high - low) / (one.size - 1) / 2
    parts = np.linspace(low - half, high + half, places + 1)
    return [float(value) for value in (parts[1:] + parts[:-1]) / 2]
