"""Join tables into one: a survey's waves or arms, distinguished by an added public column."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from inference.analyses.channel import Channel, stacked
from inference.analyses.private_numbers import NumberChannel
from inference.analyses.table import Codes, Private, Table
from inference.models.plain_means import PlainMean, pooled
from ldp_client.documents.errors import InputError

POOLED = "the waves are pooled as if nothing had changed: the formula does not name wave"
MOST_NAMED = 5


def joined(tables: Mapping[str, Table], column: str) -> Table:
    """Join tables into one, with their names in `column`, and the first name as the reference.

    Private columns keep their own table's channels. Raises InputError if a table lacks a private column, if
    its answers differ, or if a public column differs in kind.
    """
    for name, table in tables.items():
        if column in table.names:
            raise InputError(
                f"{column} {name} has a column {column} already: rename it",
                code="table.join_column_taken",
            )
    first = next(iter(tables.values()))
    private = {name: _private(name, tables, column) for name in first.private}
    rows = {name: len(table.counts) for name, table in tables.items()}
    whole = pd.Categorical(np.repeat(list(rows), list(rows.values())), categories=list(rows))
    public: dict[str, pd.Series] = {column: pd.Series(whole)}
    notes = [note for table in tables.values() for note in table.notes]
    for name in first.public.columns:
        public[str(name)], said = _public(str(name), tables, column)
        notes += said
    counts = np.concatenate([table.counts for table in tables.values()])
    noise = [f"{column} {name}: {line}" for name, table in tables.items() for line in table.noise]
    digests = {name: table.digest for name, table in tables.items()}
    doubts = [
        replace(finding, text=f"{column} {name}, {finding.text}")
        for name, table in tables.items()
        for finding in table.doubts
    ]
    once = tuple(dict.fromkeys(notes))
    frame, digest = pd.DataFrame(public), digest_of(digests)
    return Table(frame, private, counts, once, digest, tuple(noise), tuple(doubts))


def digest_of(digests: Mapping[str, str]) -> str:
    """Return the digest of these parts, in their order."""
    text = "\n".join(f"{name}\0{digest}" for name, digest in digests.items())
    return hashlib.sha256(text.encode()).hexdigest()


def _private(name: str, tables: Mapping[str, Table], column: str) -> Private:
    """Return a private column of all tables, with their channels stacked."""
    parts = {}
    for place, table in tables.items():
        if name not in table.private:
            raise InputError(
                f"{column} {place} has no private column {name}", code="table.join_lacks_private_column"
            )
        parts[place] = table.private[name]
    (leader, first), *_ = parts.items()
    for place, one in parts.items():
        if set(one.answers) != set(first.answers):
            raise InputError(
                _other_answers(name, first, one, f"{column} {leader}", f"{column} {place}"),
                code="table.join_other_answers",
            )
        if _noise(one) != _noise(first):
            raise InputError(
                f"{name} has other bounds or other noise in {column} {place} than in {column} "
                f"{leader}: such numbers cannot be joined",
                code="table.join_other_noise",
            )
        if one.ordered != first.ordered or (one.ordered and one.answers != first.answers):
            raise InputError(
                f"{name} is ordered differently in {column} {place} than in {column} {leader}",
                code="table.join_other_order",
            )
    alike = [_in_order(one, first.answers) for one in parts.values()]
    if first.number is None:
        channel: Channel | NumberChannel = stacked([one.choices for one in alike])
    else:
        channel = _pooled(first.number, [(tables[place].counts, one) for place, one in parts.items()])
    starts = np.cumsum([0, *(_distinct(one) for one in alike)])
    codes = [
        np.where(one.codes < 0, -1, one.codes + start) for one, start in zip(alike, starts, strict=False)
    ]
    return Private(name, first.answers, np.concatenate(codes), channel, first.ordered)


def _distinct(one: Private) -> int:
    """Return the number of distinct reports of a column's channel."""
    return len(one.choices.shows if one.number is None else one.number.reports)


def _noise(one: Private) -> tuple[str, float, float, float] | None:
    number = one.number
    return None if number is None else (number.noise, number.low, number.high, number.scale)


def _pooled(first: NumberChannel, columns: Sequence[tuple[Codes, Private]]) -> NumberChannel:
    """Return the joint channel, with the mean and sd of all answers, from (people of each report, column)."""
    channels = [(int(counts[one.codes >= 0].sum()), one.number) for counts, one in columns]
    numbers = [(n, number) for n, number in channels if number is not None]
    reports = np.concatenate([number.reports for _, number in numbers])
    known = [(n, number) for n, number in numbers if n]
    starts = pooled([(n, PlainMean(one.mean, 0.0, one.sd)) for n, one in known])
    plain = [(n, one.plain) for n, one in known if one.plain is not None]
    return replace(
        first, mean=starts.mean, sd=starts.sd, reports=reports, plain=pooled(plain) if plain else None
    )


def _other_answers(name: str, first: Private, one: Private, leader: str, place: str) -> str:
    said = []
    for own, other, where in ((first, one, leader), (one, first, place)):
        alone = [answer for answer in own.answers if answer not in other.answers]
        if alone:
            more = f" and {len(alone) - MOST_NAMED} more" if len(alone) > MOST_NAMED else ""
            said.append(f"{', '.join(alone[:MOST_NAMED])}{more} in {where} alone")
    return f"{name} has other choices in {place} than in {leader} ({'; '.join(said)}): they cannot be joined"


def _in_order(one: Private, answers: Sequence[str]) -> Private:
    """Return the column with its answers in this order."""
    order = [one.answers.index(answer) for answer in answers]
    if order == list(range(len(order))):
        return one
    return replace(one, answers=tuple(answers), channel=one.choices.reordered(order))


def _public(name: str, tables: Mapping[str, Table], column: str) -> tuple[pd.Series, list[str]]:
    """Return a public column of all tables, and the notes on its levels."""
    parts = {}
    for place, table in tables.items():
        if name not in table.public.columns:
            raise InputError(
                f"{column} {place} has no public column {name}", code="table.join_lacks_public_column"
            )
        parts[place] = table.public[name]
    kinds = {pd.api.types.is_numeric_dtype(part) for part in parts.values()}
    if len(kinds) > 1:
        raise InputError(
            f"{name} holds numbers in one {column} and words in another: make them alike",
            code="table.join_numbers_and_words",
        )
    levels = [list(part.cat.categories) for part in parts.values() if hasattr(part, "cat")]
    if len(levels) < len(parts):
        return pd.concat(parts.values(), ignore_index=True), []
    union = list(dict.fromkeys(level for some in levels for level in some))
    said = []
    for place, own in zip(parts, levels, strict=True):
        lacking = [level for level in union if level not in own]
        if lacking:
            said.append(f"{name} has no {', '.join(map(str, lacking[:MOST_NAMED]))} in {column} {place}")
    codes = np.concatenate([part.to_numpy(object) for part in parts.values()])
    return pd.Series(pd.Categorical(codes, categories=union)), said
