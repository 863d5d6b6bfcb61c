"""The input of an analysis: distinct rows of public columns and reports, with counts, of all its waves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype, union_categoricals

from inference.analyses.channel import Channel, stacked
from inference.results.verdict import Finding
from ldp_client.documents.errors import InputError, UsageError
from ldp_client.words.text import counted

if TYPE_CHECKING:
    from inference.analyses.private_columns import NumberChannel

Values = NDArray[np.float64]
Codes = NDArray[np.int64]
# The public column that separates waves in one analysis.
WAVE = "wave"
POOLED = "the waves are pooled as if nothing had changed: the formula does not name wave"
# If distinct rows are nearly as many as reports, reports are taken one by one.
AS_ROWS = 0.9


@dataclass(frozen=True)
class Private:
    """One private column, behind a known channel.

    name: of the column. answers: the possible true answers. The first is the reference; of two, the second is
    the event. A number has none. codes: (rows,) the index of each row's report in the channel. channel:
    P(report | answer). ordered: whether the answers have an order.
    """

    name: str
    answers: tuple[str, ...]
    codes: Codes
    channel: Channel | NumberChannel
    ordered: bool = False

    @property
    def choices(self) -> Channel:
        """Return the channel of a choice."""
        assert self.answers
        return cast(Channel, self.channel)

    @property
    def number(self) -> NumberChannel | None:
        """Return the channel of a number, None of a choice."""
        return None if self.answers else cast("NumberChannel", self.channel)


@dataclass(frozen=True)
class Table:
    """public: a row for each report, or for each group of equal reports; private: by name, in the same rows.

    counts: (rows,) reports in each row. notes: for readers of any result. digest: of the source documents.
    noise: how the design or the study describes it. doubts: findings if the reports cannot all come from
    their mechanisms. outcome: a public column that is no predictor.

    A cell is a distinct row of the predictors. frame: (cells, predictors). cell: (rows,) each row's cell.
    sizes: (cells,) reports in each.
    """

    public: pd.DataFrame
    private: Mapping[str, Private]
    counts: Codes
    notes: tuple[str, ...] = ()
    digest: str = ""
    noise: tuple[str, ...] = ()
    doubts: tuple[Finding, ...] = ()
    outcome: str | None = None

    def __post_init__(self) -> None:
        if not self.counts.sum():
            raise InputError("there are no reports: a fit would only return the prior", code="fit.no_reports")

    @property
    def n(self) -> int:
        """Return the number of reports."""
        return int(self.counts.sum())

    @property
    def names(self) -> list[str]:
        """Return the private columns, then the public columns."""
        return [*self.private, *map(str, self.public.columns)]

    @cached_property
    def cells(self) -> tuple[Codes, pd.DataFrame]:
        """Return each row's cell, and the cells."""
        return distinct_rows(self.public.drop(columns=[self.outcome] if self.outcome else []))

    @property
    def cell(self) -> Codes:
        """Return each row's cell (rows,)."""
        return self.cells[0]

    @property
    def frame(self) -> pd.DataFrame:
        """Return the cells."""
        return self.cells[1]

    @cached_property
    def sizes(self) -> Codes:
        """Return the reports in each cell (cells,)."""
        return np.bincount(self.cell, self.counts, len(self.frame)).astype(np.int64)

    @property
    def form(self) -> str:
        """Describe how reports are counted."""
        how = f"counted as {len(self.counts):,} patterns: the cost is that of the patterns"
        if len(self.counts) > AS_ROWS * self.n:
            how = "taken one by one: nearly all differ, and the cost grows with them"
        return f"{counted(self.n, 'report')} {how}"

    def only(self, public: Sequence[str], private: Sequence[str], outcome: str | None = None) -> Table:
        """Count the reports by these columns alone. outcome: a public column that is no predictor."""
        named = [*public, *([outcome] if outcome else [])]
        codes = {name: self.private[name].codes for name in private}
        keys = self.public[list(public)].assign(**codes)
        row, rows = distinct_rows(keys.assign(**{name: self.public[name] for name in named[len(public) :]}))
        return replace(
            self,
            public=rows[named],
            private={name: replace(self.private[name], codes=rows[name].to_numpy()) for name in private},
            counts=np.bincount(row, self.counts, len(rows)).astype(np.int64),
            outcome=outcome,
        )


def table_of(
    public: pd.DataFrame,
    private: Sequence[Private],
    notes: tuple[str, ...] = (),
    digest: str = "",
    noise: tuple[str, ...] = (),
) -> Table:
    """Return a table with a row per report."""
    frame = public.reset_index(drop=True)
    columns = {one.name: one for one in private}
    return Table(frame, columns, np.ones(len(frame), np.int64), notes, digest, noise)


def distinct_rows(frame: pd.DataFrame) -> tuple[Codes, pd.DataFrame]:
    """Return each row's index among the distinct rows, and these, sorted. Without columns there is one."""
    if not len(frame.columns):
        return np.zeros(len(frame), np.int64), pd.DataFrame(index=range(1))
    groups = frame.groupby(list(frame.columns), sort=True, observed=True, dropna=False)
    codes = groups.ngroup().to_numpy().astype(np.int64)
    first = np.zeros(int(codes.max()) + 1, np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, frame.iloc[first].reset_index(drop=True)


def level_text(level: object) -> str:
    """Return a level as readable text: a whole number without a decimal point."""
    return str(int(level)) if isinstance(level, float) and level.is_integer() else str(level)


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
