"""Two arms of one study, devices and paper: whether they say the same of the same people, in each wave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations

import numpy as np

from inference.analyses.arms_differing import DEVICE, PAPER, Difference, called_apart, inside_of
from inference.analyses.arms_within import BEYOND_COLUMNS, apart_within
from inference.analyses.cells import distinct_rows
from inference.analyses.design_based import as_draws, scores_of
from inference.analyses.drawn_together import Clusters, Mask
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.table import Looks, Private, Table, Values
from inference.models.base import Draws as Sites
from inference.results.diagnostics import listed
from inference.results.quantity import Quantity
from ldp_client.commands.paper import ARM
from ldp_client.documents.errors import InputError

# Arms that agree are called apart so often at most.
FALSE_ALARM = 1e-3
# What keeps the arms apart: in a formula, and in a crossed table.
IN_FORMULA, IN_TABLE = f"name {ARM} in the formula", f"cross them with --by {ARM}"
# Pairs of answers of two columns: of more, each column is held alone.
MOST_KINDS = 64
Found = tuple[list[Quantity], tuple[str, ...], tuple[str, ...]]


def arms_apart(analysis: Assembled, table: Table, sites: Sites, clusters: Clusters | None = None) -> Found:
    """What each arm says alone, how far the two differ beyond what the fit expects, and what to say of it.

    The fit takes the arms together: what it expects of each differs as their public columns do. Each private
    column that the formula names is held against it, each two of them, and each where the formula's public
    columns have each level, in each wave. clusters: whose people were drawn together, and may be alike.
    Returns quantities, reasons not to believe the fit, and notes; nothing where there are no arms. Where
    `arm` is in the formula, and no waves in which they could differ otherwise, levels alone are looked at.
    """
    needed = [str(name) for name in analysis.cells.frame.columns]
    if not analysis.privates or not has_arms(table):
        return [], (), ()
    cell, frame = distinct_rows(table.public[needed])
    each = Predicted(analysis, sites, len(frame)).each_together(frame)

    def expected(rows: Mask) -> Values:
        both = []
        for arm in (DEVICE, PAPER):
            inside = rows & (table.public[ARM] == arm).to_numpy()
            sizes = np.bincount(cell, table.counts * inside, len(frame)).astype(np.float64)
            both.append(np.tensordot(sizes / sizes.sum(), each, 1))
        return both[1] - both[0]

    named = ARM in needed and not table.waves
    by_wave = f" ({ARM} * {table.waves}, where waves differ in it)" if table.waves else ""
    levels = [name for name in needed if name not in (ARM, table.waves)]
    quantities, reasons, notes = arms_of_all(
        table, analysis.privates, expected, IN_FORMULA + by_wave, clusters, levels, levels_alone=named
    )
    return quantities, reasons, (*notes, *([] if named else _not_held(analysis)))


def _not_held(analysis: Assembled) -> tuple[str, ...]:
    """What of a public outcome's private predictors the arms could differ in, and nobody looked at."""
    if analysis.response is not None:
        return ()
    outcome, names = analysis.formula.outcome, listed([one.name for one in analysis.predictors])
    return (
        f"devices and paper were not held against each other in how {outcome} goes with {names}, though a "
        f"column entered for other rows shows in nothing else: fit `{outcome} ~ {ARM} * …` too, and look at "
        "what differs by it",
    )


def arms_of_all(
    table: Table,
    columns: Sequence[Private],
    expected: Callable[[Mask], Values] | None = None,
    remedy: str = IN_FORMULA,
    clusters: Clusters | None = None,
    levels: Sequence[str] = (),
    *,
    levels_alone: bool = False,
) -> Found:
    """The same for several private columns and each two of them, in each wave that has both arms.

    All of them together are called apart as often as one. expected: of some rows the differences that public
    columns explain of the shares of all columns' answers together, an axis each. levels: public columns; a
    private column that agrees in all is held at the levels of each, and with levels_alone there only. Two
    columns are held against each other where neither is called apart alone.
    """
    waves = list(_waves(table))
    pairs = [] if levels_alone else [*combinations(range(len(columns)), 2)]
    pairs = [pair for pair in pairs if _counted(columns, pair)]
    each = len(levels) + (not levels_alone)
    alarm = FALSE_ALARM / max((len(columns) * each + len(pairs)) * len(waves), 1)
    found = []
    for among, rows in waves:
        public = table.public[rows].reset_index(drop=True)
        part = replace(table, public=public, private={}, counts=table.counts[rows])
        moved = expected(rows) if expected else None
        own = [replace(column, codes=column.codes[rows]) for column in columns]
        within = clusters and clusters.of(rows)
        told: list[Found] = [([], (), ()) for _ in own]
        if not levels_alone:
            told = [
                arms_of(part, column, _only(moved, [place]), remedy, alarm, among, within)
                for place, column in enumerate(own)
            ]
        found += told
        for place, column in enumerate(own):
            if told[place][1] or told[place][2]:
                continue
            explained = _at(expected, rows, place)
            for level in levels:
                answer = _remedy(table, level, remedy)
                found.append(
                    ([], *apart_within(part, column, level, explained, answer, alarm, among, within))
                )
        for first, second in pairs:
            if not told[first][1] and not told[second][1]:
                crossed, beyond = _crossed(own[first], own[second]), _only(moved, [first, second])
                found.append(([], arms_of(part, crossed, beyond, remedy, alarm, among, within)[1], ()))
    quantities, reasons, notes = zip(*found, strict=True) if found else ((), (), ())
    return list(chain(*quantities)), tuple(chain(*reasons)), tuple(dict.fromkeys(chain(*notes)))


def _remedy(table: Table, level: str, remedy: str) -> str:
    """The same where arms differ by a public column."""
    if remedy == IN_TABLE:
        return remedy
    return f"name {' * '.join([ARM, level, *([table.waves] if table.waves else [])])} in the formula"


def _at(expected: Callable[[Mask], Values] | None, rows: Mask, place: int) -> Callable[[Mask], Values | None]:
    """Of some of a wave's rows what public columns explain of one private column."""

    def of(some: Mask) -> Values | None:
        inside = np.zeros(len(rows), bool)
        inside[np.flatnonzero(rows)[some]] = True
        return _only(expected(inside) if expected else None, [place])

    return of


def _only(expected: Values | None, places: Sequence[int]) -> Values | None:
    """Of these columns, as one axis."""
    if expected is None:
        return None
    others = tuple(place for place in range(expected.ndim) if place not in places)
    return np.asarray(expected.sum(axis=others).ravel())


def _counted(columns: Sequence[Private], pair: tuple[int, int]) -> bool:
    """Whether there are few enough pairs of answers, of channels that are known."""
    first, second = (columns[place] for place in pair)
    known = all(one.looks is not None and not one.unknown for one in (first, second))
    return known and len(first.answers) * len(second.answers) <= MOST_KINDS


def _crossed(first: Private, second: Private) -> Private:
    """Two columns as one, whose answers are pairs; a row without a report of both has none of it."""
    assert first.looks is not None
    assert second.looks is not None
    one, other = first.looks, second.looks
    sizes = [len(column.vectors) - bool(column.missing) for column in (first, second)]
    both = (first.codes < sizes[0]) & (second.codes < sizes[1])
    kinds, own = np.unique(np.column_stack([first.codes, second.codes])[both], axis=0, return_inverse=True)
    codes = np.full(len(both), len(kinds), np.int64)
    codes[both] = own.ravel()
    here, there = kinds.T

    def together(left: Values, right: Values) -> Values:
        return np.asarray(left[here][:, :, None] * right[there][:, None, :]).reshape(len(kinds), -1)

    looks = Looks(
        together(one.shows, other.shows),
        one.part[here] * len(other.chances) + other.part[there],
        np.stack([np.kron(of_one, of_other) for of_one in one.chances for of_other in other.chances]),
        exclusive=np.logical_and.outer(one.exclusive_parts, other.exclusive_parts).ravel(),
    )
    vectors = together(first.vectors, second.vectors)
    return Private(
        f"how {first.name} and {second.name} go together",
        tuple(f"{left}, {right}" for left in first.answers for right in second.answers),
        codes,
        np.concatenate([vectors, np.ones((1, vectors.shape[1]))]),
        missing=max(int(np.sum(~both)), 1),
        looks=looks,
    )


def _waves(table: Table) -> Iterator[tuple[str, Mask]]:
    """The rows of each wave that has both arms, and what to call it; of no waves all rows."""
    for where, rows in table.samples:
        if not table.waves or set(table.public[ARM][rows]) == {DEVICE, PAPER}:
            yield where, rows


def has_arms(table: Table) -> bool:
    """Whether devices and paper are in it; a survey's own column may be called so too."""
    return ARM in table.public.columns and set(table.public[ARM].unique()) == {DEVICE, PAPER}


def arms_of(
    table: Table,
    column: Private,
    expected: Values | None = None,
    remedy: str = IN_FORMULA,
    alarm: float = FALSE_ALARM,
    among: str = "",
    clusters: Clusters | None = None,
) -> Found:
    """The same for one private column. expected: the difference of shares that public columns explain.

    remedy: what to do where the two disagree. alarm: how often arms that agree are called apart, at most.
    among: the wave that the table is of, in words. clusters: of the table's rows.
    """
    where = f" where {among}" if among else ""
    try:
        one = Difference.of(
            column, scores_of(column), table.counts, inside_of(table, column), expected, clusters
        )
    except InputError as error:
        return [], (), (f"devices and paper were not held against each other{where}: {error}",)
    rest = "" if expected is None else BEYOND_COLUMNS
    found = list(_said(one, rest, among))
    if not called_apart([one], alarm):
        return found, (), ()
    reason = (
        f"devices and paper disagree on {column.name}{where}{rest}: do not take them together; {remedy}, or "
        "find out who was asked on paper and what they did"
    )
    return found, (reason,), ()


def _said(one: Difference, rest: str, among: str) -> Iterator[Quantity]:
    """Each arm's shares alone, and their differences, of which public columns explain what `rest` says."""
    where, within = (f" where {among}", f", {among}") if among else ("", "")
    answers = one.column.answers
    for place in [1] if len(answers) == 2 else range(len(answers)):
        what, lacks = f"{one.column.name} = {answers[place]}", one.lacks[place]
        for arm, (shares, own, few) in zip((DEVICE, PAPER), one.parts, strict=True):
            words = f"share of {what}{where} as {arm} alone says it{few[place].words}"
            draws = as_draws(shares[place], own[place, place] + few[place].extra, few[place].degrees)
            yield Quantity(f"share {what}{within}, {ARM} = {arm} alone", words, draws, origin=draws)
        beyond = f"difference of the share of {what}{where}, paper − devices{rest}{lacks.words}"
        draws = as_draws(one.moved[place], one.covariance[place, place], lacks.degrees)
        name = f"share {what}{within}, {ARM}: {PAPER} − {DEVICE}"
        yield Quantity(name, beyond, draws, contrast=True, origin=draws)
