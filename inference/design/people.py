"""The people that a plan of a formula is about: distinct rows of public columns, and their shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from inference.analyses.formula import known_column
from inference.analyses.public_columns import COUNT, as_taken, positive, refuse_blanks
from inference.analyses.table import distinct_rows, level_text
from inference.results.verdict import listed
from ldp_client.documents.errors import InputError
from ldp_client.documents.public import PublicField

# A public number without a table is taken at so many places of its range, or fewer beside other numbers.
PLACES, FEWER_PLACES = 25, 7


@dataclass(frozen=True)
class People:
    """frame: distinct rows of public columns. shares: (rows,) of all people. words: where they are from."""

    frame: pd.DataFrame
    shares: NDArray[np.float64]
    words: str


def people_in(known: pd.DataFrame, names: Sequence[str], fields: Mapping[str, PublicField]) -> People:
    """Return distinct rows of these columns of a table; a column `count` is each row's number of people.

    fields: of a study, whose values they must have. Raises InputError.
    """
    where = "the table of people"
    columns = [str(name) for name in known.columns]
    weights = np.ones(len(known))
    for name in names:
        known_column(name, columns, f"{where}: ")
        refuse_blanks(known[name], f"{name} of {where}")
    known = as_taken(known, names, f"{where}: ")
    if COUNT in columns and COUNT not in names:
        refuse_blanks(known[COUNT], f"{COUNT} of {where}")
        weights = positive(as_taken(known, [COUNT], f"{where}: ")[COUNT], f"{COUNT} of {where}", 0.0)
    known, weights = known[weights > 0], weights[weights > 0]
    if not len(known):
        raise InputError(f"{where} is empty", code="plan.table_without_people")
    for name, field in ((name, fields[name]) for name in names if name in fields):
        texts = known[name].map(level_text)
        numbers = not field.choices and pd.api.types.is_numeric_dtype(known[name])
        good = texts.isin(field.choices)
        if numbers:
            good = known[name].between(float(field.value(0)), float(field.value(field.size - 1)))
        if not good.all():
            raise InputError(
                f"{where}: {name} has {texts[~good].iloc[0]!r}, which the study does not have",
                code="plan.unknown_public_value",
            )
        if field.choices:
            known = known.assign(**{name: pd.Categorical(texts, categories=list(field.choices))})
    codes, frame = distinct_rows(known[list(names)])
    shares = np.bincount(codes, weights) / weights.sum()
    return People(frame, shares, f"{', '.join(names) or 'people'}: as in {where}, {weights.sum():,.0f}")


def uniform_people(fields: Sequence[PublicField]) -> People:
    """Return all combinations of public fields, equally likely, with numbers at a few places."""
    places = PLACES if sum(not field.choices for field in fields) < 2 else FEWER_PLACES
    values: list[Sequence[Any]] = []
    for field in fields:
        if field.choices:
            values.append(field.choices)
        else:
            # The middles of equal parts of the range, whose ends are half a step beyond the values.
            low, high = float(field.value(0)), float(field.value(field.size - 1))
            half = (high - low) / (field.size - 1) / 2
            ends = np.linspace(low - half, high + half, min(field.size, places) + 1)
            values.append(((ends[1:] + ends[:-1]) / 2).tolist())
    rows = list(product(*values))
    frame = pd.DataFrame(index=range(len(rows)))
    for place, field in enumerate(fields):
        column = [row[place] for row in rows]
        frame[field.id] = pd.Categorical(column, categories=list(field.choices)) if field.choices else column
    names = listed([field.id for field in fields]) if fields else "people"
    words = f"{names}: all values equally likely (a --table of people says who they are)"
    return People(frame, np.full(len(rows), 1 / len(rows)), words)
