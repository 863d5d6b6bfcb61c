"""Join tables of several waves: versions of a study, several studies, or several tables under one design."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype, union_categoricals

from inference.analyses.channel import Channel, stacked
from inference.analyses.table import WAVE, Private, Table
from ldp_client.documents.errors import InputError, UsageError

if TYPE_CHECKING:
    from inference.analyses.private_columns import NumberChannel

POOLED = "the waves are pooled as if nothing had changed: the formula does not name wave"


def concat(tables: Mapping[str, Table], named: Sequence[str] = (WAVE,)) -> Table:
    """Join tables of other people into one; `wave` has their names, the first as the reference.

    Each keeps its own channels. A single table called "" is returned as it is. named: columns of the formula.
    Raises InputError for another single table, or if a column differs in kind.
    """
    if list(tables) == [""]:
        return tables[""]
    if len(tables) < 2:
        raise UsageError("waves are compared with one another: give two or more", code="wave.only_one")
    first = next(iter(tables.values()))
    parts = [f"{name}\0{table.digest}" for name, table in tables.items()]
    names = np.repeat(list(tables), [len(table.counts) for table in tables.values()])
    public = {str(name): _public(str(name), tables) for name in first.public.columns}
    shared = set.intersection(*(set(table.notes) for table in tables.values()))
    notes = [
        f"each wave: {note}" if note in shared else f"wave {name}: {note}"
        for name, table in tables.items()
        for note in table.notes
    ]
    doubts = [(name, finding) for name, table in tables.items() for finding in table.doubts]
    return Table(
        pd.DataFrame({WAVE: pd.Categorical(names, categories=list(tables)), **public}),
        {name: _private(name, tables) for name in first.private},
        np.concatenate([table.counts for table in tables.values()]),
        (*dict.fromkeys(notes), *(() if WAVE in named else (POOLED,))),
        hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        tuple(f"wave {name}: {line}" for name, table in tables.items() for line in table.noise),
        tuple(replace(finding, text=f"wave {name}, {finding.text}") for name, finding in doubts),
    )


def refuse_wave(name: str, columns: Iterable[str]) -> None:
    """Raise InputError if a wave has a column that the waves' names would hide."""
    if WAVE in columns:
        raise InputError(
            f"wave {name}: it has a column {WAVE}, which would be hidden: rename it", code="wave.name_taken"
        )


def _public(name: str, tables: Mapping[str, Table]) -> pd.Series:
    """Return a public column of all tables: numbers, or the union of their levels."""
    parts = [table.public[name] for table in tables.values()]
    if len({is_numeric_dtype(part) for part in parts}) > 1:
        raise InputError(
            f"{name} holds numbers in one wave and choices in another: make them alike",
            code="wave.numbers_and_choices",
        )
    if all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
        return pd.Series(union_categoricals(parts, ignore_order=True))
    return pd.concat(parts, ignore_index=True)


def _private(name: str, tables: Mapping[str, Table]) -> Private:
    """Return a private column of all tables, with their channels stacked."""
    parts = {key: table.private[name] for key, table in tables.items()}
    (leader, first), *_ = parts.items()
    for key, one in parts.items():
        alone = sorted(set(one.answers) ^ set(first.answers))
        if alone or one.ordered != first.ordered or (one.ordered and one.answers != first.answers):
            raise InputError(
                f"{name} has other choices, or another order of them, in wave {key} than in wave {leader} "
                f"({', '.join(alone[:5])}): they cannot be joined",
                code="wave.other_answers",
            )
        if one.number and first.number and one.number.mechanism != first.number.mechanism:
            raise InputError(
                f"{name} has other bounds or other noise in wave {key} than in wave {leader}: such numbers "
                "cannot be joined",
                code="wave.other_noise",
            )
    numbers = [one.number for one in parts.values() if one.number is not None]
    channel: Channel | NumberChannel
    if not numbers:
        own = [
            one.choices.reordered([one.answers.index(answer) for answer in first.answers])
            for one in parts.values()
        ]
        channel, distinct = stacked(own), [len(one.shows) for one in own]
    else:
        # JAX, which tables of choices need not.
        from inference.models.plain_means import pooled

        people = [table.n for table in tables.values()]
        plain = pooled([(n, one.plain) for n, one in zip(people, numbers, strict=True)])
        reports = np.concatenate([number.reports for number in numbers])
        channel = replace(numbers[0], reports=reports, plain=plain)
        distinct = [len(number.reports) for number in numbers]
    starts = accumulate(distinct[:-1], initial=0)
    codes = [one.codes + start for one, start in zip(parts.values(), starts, strict=True)]
    return Private(name, first.answers, np.concatenate(codes), channel, first.ordered)
