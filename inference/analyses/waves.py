"""Join tables of several waves: versions of a study, several studies, or several tables under one design."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from inference.analyses.channel import Channel, stacked
from inference.analyses.table import WAVE, Private, Table
from ldp_client.documents.errors import InputError, UsageError

if TYPE_CHECKING:
    from inference.analyses.private_numbers import NumberChannel


def concat(tables: Mapping[str, Table], column: str = WAVE) -> Table:
    """Join tables of other people into one; a public column has their names, the first as the reference.

    Each keeps its own channels. Raises InputError for fewer than two tables, or if a column differs in kind.
    """
    if len(tables) < 2:
        raise UsageError(f"{column}s are compared with one another: give two or more", code="wave.only_one")
    first = next(iter(tables.values()))
    parts = [f"{name}\0{table.digest}" for name, table in tables.items()]
    names = np.repeat(list(tables), [len(table.counts) for table in tables.values()])
    public = {str(name): _public(str(name), tables) for name in first.public.columns}
    shared = set.intersection(*(set(table.notes) for table in tables.values()))
    notes = [
        f"each {column}: {note}" if note in shared else f"{column} {name}: {note}"
        for name, table in tables.items()
        for note in table.notes
    ]
    doubts = [(name, finding) for name, table in tables.items() for finding in table.doubts]
    return Table(
        pd.DataFrame({column: pd.Categorical(names, categories=list(tables)), **public}),
        {name: _private(name, tables, column) for name in first.private},
        np.concatenate([table.counts for table in tables.values()]),
        tuple(dict.fromkeys(notes)),
        hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        tuple(f"{column} {name}: {line}" for name, table in tables.items() for line in table.noise),
        tuple(replace(finding, text=f"{column} {name}, {finding.text}") for name, finding in doubts),
    )


def _public(name: str, tables: Mapping[str, Table]) -> pd.Series:
    """Return a public column of all tables: numbers, or the union of their levels."""
    parts = [table.public[name] for table in tables.values()]
    kinds = {pd.api.types.is_numeric_dtype(part) for part in parts}
    if len(kinds) > 1:
        raise InputError(
            f"{name} holds numbers in one wave and choices in another: make them alike",
            code="wave.numbers_and_choices",
        )
    whole = np.concatenate([part.to_numpy(np.float64 if kinds == {True} else object) for part in parts])
    if not all(isinstance(part.dtype, pd.CategoricalDtype) for part in parts):
        return pd.Series(whole)
    levels = dict.fromkeys(level for part in parts for level in part.cat.categories)
    return pd.Series(pd.Categorical(whole, categories=list(levels)))


def _private(name: str, tables: Mapping[str, Table], column: str) -> Private:
    """Return a private column of all tables, with their channels stacked."""
    parts = {key: table.private[name] for key, table in tables.items()}
    (leader, first), *_ = parts.items()
    for key, one in parts.items():
        alone = sorted(set(one.answers) ^ set(first.answers))
        if alone or one.ordered != first.ordered or (one.ordered and one.answers != first.answers):
            raise InputError(
                f"{name} has other choices, or another order of them, in {column} {key} than in {column} "
                f"{leader} ({', '.join(alone[:5])}): they cannot be joined",
                code="wave.other_answers",
            )
        if one.number and first.number and one.number.mechanism != first.number.mechanism:
            raise InputError(
                f"{name} has other bounds or other noise in {column} {key} than in {column} {leader}: such "
                "numbers cannot be joined",
                code="wave.other_noise",
            )
    numbers = [one.number for one in parts.values() if one.number is not None]
    channel: Channel | NumberChannel
    if not numbers:
        orders = [[one.answers.index(answer) for answer in first.answers] for one in parts.values()]
        channel = stacked(
            [one.choices.reordered(order) for one, order in zip(parts.values(), orders, strict=True)]
        )
        distinct = [len(one.choices.shows) for one in parts.values()]
    else:
        # JAX, which tables of choices need not.
        from inference.models.plain_means import pooled

        people = [int(tables[key].counts[one.codes >= 0].sum()) for key, one in parts.items()]
        both = [(n, number.plain) for n, number in zip(people, numbers, strict=True)]
        plain = pooled([(n, one) for n, one in both if n and one is not None])
        reports = np.concatenate([number.reports for number in numbers])
        channel = replace(numbers[0], reports=reports, plain=plain)
        distinct = [len(number.reports) for number in numbers]
    starts = np.cumsum([0, *distinct[:-1]])
    codes = [
        np.where(one.codes < 0, -1, one.codes + at) for one, at in zip(parts.values(), starts, strict=True)
    ]
    return Private(name, first.answers, np.concatenate(codes), channel, first.ordered)
