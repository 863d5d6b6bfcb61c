"""Two arms of one study, devices and paper: whether they say the same of the same people, in each wave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from inference.analyses.cells import distinct_rows
from inference.analyses.design_based import as_draws, estimate, scores_of
from inference.analyses.drawn_together import Clusters, Mask, degrees_of, tail_of, together
from inference.analyses.few_reports import Lacking, People, bounds_of, lacking
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.table import Codes, Looks, Private, Table, Values
from inference.models.base import Draws as Sites
from inference.results.diagnostics import listed
from inference.results.quantity import Quantity
from ldp_client.commands.paper import ARM
from ldp_client.documents.errors import InputError

DEVICE, PAPER = "device", "paper"
# Arms that agree are called apart so often at most.
FALSE_ALARM = 1e-3
# So many surveys of people who agree are drawn for it.
SURVEYS = 20_000
# What keeps the arms apart: in a formula, and in a crossed table.
IN_FORMULA, IN_TABLE = f"name {ARM} in the formula", f"cross them with --by {ARM}"
# Pairs of answers of two columns: of more, each column is held alone.
MOST_KINDS = 64
Found = tuple[list[Quantity], tuple[str, ...], tuple[str, ...]]
# Shares (answers,), their covariance, and what each variance lacks.
Part = tuple[Values, NDArray[np.float64], list[Lacking]]


def arms_apart(analysis: Assembled, table: Table, sites: Sites, clusters: Clusters | None = None) -> Found:
    """What each arm says alone, how far the two differ beyond what the fit expects, and what to say of it.

    The fit takes the arms together: what it expects of each differs as their public columns do. Each private
    column that the formula names is held against it, and each two of them, in each wave. clusters: whose
    people were drawn together, and may be alike. Returns quantities, reasons not to believe the fit, and
    notes; nothing where there are no arms, or `arm` is in it, and no waves in which they could differ
    otherwise.
    """
    needed = [str(name) for name in analysis.cells.frame.columns]
    if not analysis.privates or not has_arms(table) or (ARM in needed and not table.waves):
        return [], (), ()
    cell, frame = distinct_rows(table.public[needed])
    predicted = Predicted(analysis, sites, len(frame))

    def expected(rows: Mask) -> Values:
        both = []
        for arm in (DEVICE, PAPER):
            inside = rows & (table.public[ARM] == arm).to_numpy()
            sizes = np.bincount(cell, table.counts * inside, len(frame)).astype(np.float64)
            both.append(predicted.together(frame, sizes))
        return both[1] - both[0]

    by_wave = f" ({ARM} * {table.waves}, where waves differ in it)" if table.waves else ""
    privates = analysis.privates
    quantities, reasons, notes = arms_of_all(table, privates, expected, IN_FORMULA + by_wave, clusters)
    return quantities, reasons, (*notes, *_not_held(analysis))


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
) -> Found:
    """The same for several private columns and each two of them, in each wave that has both arms.

    All of them together are called apart as often as one. expected: of a wave's rows the differences that
    public columns explain of the shares of all columns' answers together, an axis each. Two columns are held
    against each other where neither is called apart alone.
    """
    waves = list(_waves(table))
    pairs = [pair for pair in combinations(range(len(columns)), 2) if _counted(columns, pair)]
    alarm = FALSE_ALARM / max((len(columns) + len(pairs)) * len(waves), 1)
    found = []
    for among, rows in waves:
        public = table.public[rows].reset_index(drop=True)
        part = replace(table, public=public, private={}, counts=table.counts[rows])
        moved = expected(rows) if expected else None
        own = [replace(column, codes=column.codes[rows]) for column in columns]
        within = clusters and clusters.of(rows)
        told = [
            arms_of(part, column, _only(moved, [place]), remedy, alarm, among, within)
            for place, column in enumerate(own)
        ]
        found += told
        for first, second in pairs:
            if not told[first][1] and not told[second][1]:
                crossed, beyond = _crossed(own[first], own[second]), _only(moved, [first, second])
                found.append(([], arms_of(part, crossed, beyond, remedy, alarm, among, within)[1], ()))
    quantities, reasons, notes = zip(*found, strict=True) if found else ((), (), ())
    return list(chain(*quantities)), tuple(chain(*reasons)), tuple(chain(*notes))


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
        every = scores_of(column)
        present = column.codes < len(column.vectors) - bool(column.missing)
        inside = [(table.public[ARM] == arm).to_numpy() & present for arm in (DEVICE, PAPER)]
        within = [clusters and clusters.of(rows) for rows in inside]
        parts = [
            _part(column, every[rows], table.counts[rows], own)
            for rows, own in zip(inside, within, strict=True)
        ]
        degrees = degrees_of(within, len(column.answers) - 1)
    except InputError as error:
        return [], (), (f"devices and paper were not held against each other{where}: {error}",)
    moved = parts[1][0] - parts[0][0] - (0 if expected is None else expected)
    lacks = [one.beside(other) for one, other in zip(parts[0][2], parts[1][2], strict=True)]
    covariance = parts[0][1] + parts[1][1]
    if clusters is not None:
        covariance = together(every, table.counts, inside, clusters)
    covariance += np.diag([one.extra for one in lacks])
    rest = "" if expected is None else ", beyond what public columns explain"
    found = list(_said(column, parts, (moved, covariance, lacks), rest, among))
    # Shares add up to 1: one of them says nothing beside the others.
    statistic = float(moved[1:] @ np.linalg.pinv(covariance[1:, 1:]) @ moved[1:])
    if tail_of(statistic, len(moved) - 1, degrees) >= alarm:
        return found, (), ()
    if clusters is None:
        # Of few records the normal law says too little of what is rare.
        arms = [_Arm.of(column, table.counts, every, *one) for one in zip(inside, parts, strict=True)]
        if _chance(arms, moved, np.zeros(len(moved)) if expected is None else expected) >= alarm:
            return found, (), ()
    reason = (
        f"devices and paper disagree on {column.name}{where}{rest}: do not take them together; {remedy}, or "
        "find out who was asked on paper and what they did"
    )
    return found, (reason,), ()


def _said(column: Private, parts: Sequence[Part], apart: Part, rest: str, among: str) -> Iterator[Quantity]:
    """Each arm's shares alone, and their differences, of which public columns explain what `rest` says."""
    where, within = (f" where {among}", f", {among}") if among else ("", "")
    moved, covariance, lacks = apart
    for place in [1] if len(column.answers) == 2 else range(len(column.answers)):
        what = f"{column.name} = {column.answers[place]}"
        for arm, (shares, own, few) in zip((DEVICE, PAPER), parts, strict=True):
            words = f"share of {what}{where} as {arm} alone says it{few[place].words}"
            draws = as_draws(shares[place], own[place, place] + few[place].extra, few[place].degrees)
            yield Quantity(f"share {what}{within}, {ARM} = {arm} alone", words, draws, origin=draws)
        beyond = f"difference of the share of {what}{where}, paper − devices{rest}{lacks[place].words}"
        draws = as_draws(moved[place], covariance[place, place], lacks[place].degrees)
        name = f"share {what}{within}, {ARM}: {PAPER} − {DEVICE}"
        yield Quantity(name, beyond, draws, contrast=True, origin=draws)


def _part(column: Private, scores: Values, counts: Codes, clusters: Clusters | None) -> Part:
    """An arm's shares, their covariance, and what each variance lacks. Raises InputError for one cluster."""
    shares, own = estimate(scores, np.ones(len(counts)), counts, clusters.sampled() if clusters else None)
    people = People(counts, np.ones(len(counts)), clusters.units if clusters else None)
    lacks = [lacking(own[at, at], scores[:, at], people, one) for at, one in enumerate(bounds_of(column))]
    if clusters is not None:
        lacks = [one.of_units(clusters.many - 1, clusters.unit) for one in lacks]
    return shares, own, lacks


@dataclass(frozen=True)
class _Arm:
    """One arm as it could have come out otherwise.

    shares: (answers,) as its reports say them; covariance: theirs. known: of each part of the channel the
    share and number of its reports, and P(report | answer), where each shows one thing. others: the
    covariance of the mean of the rest.
    """

    shares: Values
    covariance: Values
    known: tuple[tuple[float, int, Values], ...]
    others: Values

    @classmethod
    def of(
        cls,
        column: Private,
        counts: Codes,
        scores: Values,
        inside: NDArray[np.bool_],
        part: Part,
    ) -> _Arm:
        """Of the rows inside, and what is estimated of them."""
        looks = column.looks
        assert looks is not None
        shares, covariance, lacks = part
        parts = looks.part[column.codes[inside]]
        own, n = counts[inside].astype(np.float64), float(counts[inside].sum())
        others = ~looks.exclusive_parts[parts]
        left = scores[inside][others] - shares
        known = [
            (own[parts == at].sum() / n, int(own[parts == at].sum()), looks.chances[at])
            for at in np.unique(parts)
            if looks.exclusive_parts[at]
        ]
        spread = (own[others, None] * left).T @ left / n**2
        return cls(shares, covariance + np.diag([one.extra for one in lacks]), tuple(known), spread)

    def drawn(self, shares: Values, random: np.random.Generator) -> Values:
        """What it would say of people with these shares, (surveys, answers) both."""
        found = np.zeros_like(shares)
        for share, many, chances in self.known:
            said = random.multinomial(many, _shares(shares @ chances))
            found += share * (said @ np.linalg.pinv(chances) / many - shares)
        return shares + found + random.standard_normal(shares.shape) @ _root(self.others)


def _chance(arms: list[_Arm], moved: Values, expected: Values) -> float:
    """How often arms of people who agree differ by as much: by the law of the reports, however few they are.

    moved: (answers,) paper − devices, beyond what is expected. The people's shares are those of both arms,
    drawn as uncertain as they are.
    """
    random = np.random.default_rng(0)
    sure = np.asarray([1 / max(float(np.trace(one.covariance)), np.finfo(float).tiny) for one in arms])
    sure = sure / sure.sum()
    centre = _shares(sure[0] * arms[0].shares + sure[1] * (arms[1].shares - expected))
    spread = sum(part**2 * one.covariance for part, one in zip(sure, arms, strict=True))
    shares = _shares(np.abs(centre + random.standard_normal((SURVEYS, len(centre))) @ _root(spread)))
    devices = arms[0].drawn(shares, random)
    on_paper = _shares(shares + expected)
    apart = arms[1].drawn(on_paper, random) - devices - (on_paper - shares)
    # Shares add up to 1: one of them says nothing beside the others.
    turned = np.linalg.pinv(np.atleast_2d(np.cov(apart[:, 1:], rowvar=False)))
    far = np.einsum("si,ij,sj->s", apart[:, 1:], turned, apart[:, 1:])
    return float(1 + np.sum(far >= moved[1:] @ turned @ moved[1:] * (1 - 1e-9))) / (1 + SURVEYS)


def _shares(values: Values) -> Values:
    """Values as shares that add up to 1."""
    inside = np.maximum(values, 0)
    return np.asarray(inside / inside.sum(axis=-1, keepdims=True))


def _root(covariance: Values) -> Values:
    """A matrix that gives normal numbers this covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))).T)
