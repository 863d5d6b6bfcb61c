"""Join tables into one: a survey's waves or arms, distinguished by an added public column."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from inference.analyses.private_numbers import NumberChannel
from inference.analyses.public_columns import look_alike
from inference.analyses.table import Codes, Looks, Private, Table, Values, with_missing
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
    doubts = [f"{column} {name}, {line}" for name, table in tables.items() for line in table.doubts]
    once = tuple(dict.fromkeys(notes))
    frame, digest = pd.DataFrame(public), digest_of(digests)
    alike = {name: pair for table in tables.values() for name, pair in table.alike.items()}
    found = Table(frame, private, counts, once, digest, tuple(noise), tuple(doubts))
    return replace(found, alike=alike)


def digest_of(digests: Mapping[str, str]) -> str:
    """Return the digest of these parts, in their order."""
    text = "\n".join(f"{name}\0{digest}" for name, digest in digests.items())
    return hashlib.sha256(text.encode()).hexdigest()


def _private(name: str, tables: Mapping[str, Table], column: str) -> Private:
    """Return a private column of all tables, with their vectors stacked."""
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
        if _channel(one) != _channel(first):
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
    alike = [_said(_in_order(one, first.answers)) for one in parts.values()]
    starts = np.cumsum([0, *(len(one.vectors) for one in alike)])
    codes = [
        np.where(one.codes < 0, -1, one.codes + start) for one, start in zip(alike, starts, strict=False)
    ]
    shares = dict.fromkeys(share for one in alike for share in one.unknown)
    looks = [one.looks for one in alike if one.looks is not None]
    whole = Private(
        name,
        first.answers,
        np.concatenate(codes),
        np.vstack([one.vectors for one in alike]),
        {share: np.vstack([_or_zeros(one.unknown, share, one.vectors) for one in alike]) for share in shares},
        first.ordered,
        all(one.exact for one in alike),
        looks=_looks(looks) if looks and len(looks) == len(alike) else None,
        channel=_pooled([(tables[place].counts, one) for place, one in zip(parts, alike, strict=True)]),
    )
    return with_missing(whole)


def _channel(one: Private) -> tuple[str, float, float, float] | None:
    channel = one.channel
    return None if channel is None else (channel.noise, channel.low, channel.high, channel.scale)


def _pooled(columns: Sequence[tuple[Codes, Private]]) -> NumberChannel | None:
    """Return the joint channel, with the mean and sd of all answers, from (people of each report, column)."""
    channels = [one.channel for _, one in columns]
    first = channels[0]
    sizes = [int(counts[one.codes >= 0].sum()) for counts, one in columns]
    known = [(n, one) for n, one in zip(sizes, channels, strict=True) if n and one is not None]
    if first is None or not known:
        return first
    starts = pooled([(n, PlainMean(one.mean, 0.0, one.sd)) for n, one in known])
    plain = [(n, one.plain) for n, one in known if one.plain is not None]
    return replace(first, mean=starts.mean, sd=starts.sd, plain=pooled(plain) if plain else None)


def _said(one: Private) -> Private:
    """Return the column with code −1 for missing reports, and without their vector, the last."""
    if not one.missing:
        return one
    last = len(one.vectors) - 1
    unknown = {share: slopes[:last] for share, slopes in one.unknown.items()}
    codes = np.where(one.codes == last, -1, one.codes)
    return replace(one, codes=codes, vectors=one.vectors[:last], unknown=unknown, missing=0)


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
    unknown = {share: slopes[:, order] for share, slopes in one.unknown.items()}
    looks = one.looks
    if looks is not None:
        moved = {share: slopes[:, order] for share, slopes in looks.unknown.items()}
        looks = replace(looks, chances=looks.chances[:, order], unknown=moved)
    vectors = one.vectors[:, order]
    return replace(one, answers=tuple(answers), vectors=vectors, unknown=unknown, looks=looks)


def _or_zeros(found: Mapping[str, Values], name: str, alike: Values) -> Values:
    return found[name] if name in found else np.zeros_like(alike)


def _looks(looks: Sequence[Looks]) -> Looks:
    """Return the features of all reports."""
    width = max(one.shows.shape[1] for one in looks)
    shares = dict.fromkeys(share for one in looks for share in one.unknown)
    parts = np.cumsum([0, *(len(one.chances) for one in looks)])
    return Looks(
        np.vstack([np.pad(one.shows, ((0, 0), (0, width - one.shows.shape[1]))) for one in looks]),
        np.concatenate([one.part + start for one, start in zip(looks, parts, strict=False)]),
        np.concatenate([_wide(one.chances, width) for one in looks]),
        {
            share: np.concatenate([_wide(_or_zeros(one.unknown, share, one.chances), width) for one in looks])
            for share in shares
        },
        np.concatenate([one.exclusive_parts for one in looks]),
    )


def _wide(chances: Values, width: int) -> Values:
    return np.pad(chances, ((0, 0), (0, 0), (0, width - chances.shape[2])))


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
        whole = pd.concat(parts.values(), ignore_index=True)
        return whole, [] if kinds == {True} else list(look_alike(name, list(map(str, whole.unique()))))
    union = list(dict.fromkeys(level for some in levels for level in some))
    said = list(look_alike(name, list(map(str, union))))
    for place, own in zip(parts, levels, strict=True):
        lacking = [level for level in union if level not in own]
        if lacking:
            said.append(f"{name} has no {', '.join(map(str, lacking[:MOST_NAMED]))} in {column} {place}")
    codes = np.concatenate([part.to_numpy(object) for part in parts.values()])
    return pd.Series(pd.Categorical(codes, categories=union)), said
