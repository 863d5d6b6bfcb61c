"""Whether reports look as the fitted law says: how often each came, and with what, of all and by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
from jax import Array
from numpy.typing import NDArray

from inference.analyses.cells import cuts_of
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.table import Codes, Looks, Private, Values
from inference.analyses.varying import level_text
from inference.analyses.whole_reports import Truths
from inference.models.base import Draws as Sites
from inference.results.diagnostics import Diagnostics, diagnose
from inference.results.predictive import Predictive
from inference.results.prior_notes import contradictions, knowledge, prior_notes
from inference.results.verdict import Part
from inference.samplers import SAMPLERS
from inference.sampling import Sampled

Mask = NDArray[np.bool_]

SIMULATED = 60
# Groups of people, and what shows in each: a page shows no more.
MOST_LEVELS, MOST_GROUPS = 8, 48
# Kinds of reports of two columns together; of more, each column is looked at alone.
MOST_KINDS = 64
AT_ONCE, MOST_AT_ONCE = 2_000_000, 20_000_000
# The same in all where the combinations are places of a quadrature, so that not too few cells are looked at.
MOST_WITH_PLACES = 200_000_000
# Of a private number: values in memory for each law, and how much longer it takes than a law of choices.
HELD, LONGER = 60, {"laplace": 4, "gaussian": 40}


def judged(
    parameters: Mapping[str, Values],
    prior: Mapping[str, Values],
    drawn: Sampled,
    n: int,
    notes: Sequence[str],
    method: str,
) -> Diagnostics:
    """Judge an analysis by its draws and its prior's, by parameter, from n reports."""
    return diagnose(
        parameters,
        drawn.diverging,
        n,
        (*notes, *prior_notes(parameters, prior)),
        drawn.reasons,
        drawn.mixing,
        SAMPLERS[method].remedy,
        drawn.chained,
        Part.of(contradictions(parameters, prior)),
        knowledge(parameters, prior),
    )


def checked(
    analysis: Assembled, prior: Sites | None, posterior: Sites, seed: int, by: str | None = None
) -> Predictive | None:
    """Shares of reports, simulated and observed; None where reports differ too much to be counted.

    Of a private outcome what was reported, of a public one the parts of its range, or its choices, and of a
    private number the parts of its reports' range; with private predictors, each beside what they were
    reported to be. prior: {site: (draws, …)}, None under flat priors, which expect anything. posterior:
    {site: (chains, draws, …)}. by: a column to group by first.
    """
    random = np.random.default_rng(seed)
    found = [_compared(one, prior, posterior, random, by) for one in _pairs(analysis)]
    if not found:
        return None
    whole = [np.concatenate(parts, axis=-1) for parts in zip(*(one[:3] for one in found), strict=True)]
    before, after, observed = whole
    names = [name for one in found for name in one.people]
    return Predictive(
        before, after, observed, people={place: name for place, name in enumerate(names) if name}
    )


class _Comparison(NamedTuple):
    """Of a pair's kinds in groups of people the shares before and after the reports, and observed.

    before, after: (draws, groups × kinds). people: of each entry, at a group's first whose it is, else "".
    """

    before: Values
    after: Values
    observed: Values
    people: list[str]


def _compared(
    pair: _Pair, prior: Sites | None, posterior: Sites, random: np.random.Generator, by: str | None
) -> _Comparison:
    most = max(1, MOST_GROUPS // pair.kinds)
    named = list(_groups(pair.frame, by))[:most]
    groups = [mask for _, mask in named]
    observed = pair.observed(groups)
    after = pair.simulated(_some(posterior, 2), groups, random)
    expects = prior is not None
    before = pair.simulated(_some(prior or {}, 1), groups, random) if expects else random.random(after.shape)
    # Of kinds of which each report is one, the last's share follows from the others'.
    kept = [place for place in range(len(observed)) if not pair.exclusive or (place + 1) % pair.kinds]
    people = ["" if place % pair.kinds else named[place // pair.kinds][0] for place in kept]
    return _Comparison(before[:, kept], after[:, kept], observed[kept], people)


def _groups(frame: pd.DataFrame, by: str | None) -> Iterator[tuple[str, Mask]]:
    """Names of groups, and their cells: all, and those of each level of `by`, and of a column with few."""
    yield "all", np.ones(len(frame), bool)
    columns = sorted(frame.columns, key=lambda column: column != by)
    for column in columns:
        values = frame[column]
        if 2 <= values.nunique() <= (MOST_GROUPS if column == by else MOST_LEVELS):
            for level in values.unique():
                yield f"{column} = {level_text(level)}", (values == level).to_numpy()


def _some(sites: Sites, axes: int) -> dict[str, Values]:
    """Some draws, evenly taken, as one chain: {site: (1, draws, …)}."""
    flat = {name: values.reshape(-1, *values.shape[axes:]) for name, values in sites.items()}
    places = np.linspace(0, len(next(iter(flat.values()))) - 1, SIMULATED).astype(int)
    return {name: values[places][None] for name, values in flat.items()}


def _pairs(analysis: Assembled) -> Iterator[_Pair]:
    """The outcome with each private predictor; each of them alone where the other cannot be counted."""
    response = analysis.response
    sides = [one for one in analysis.predictors if one.looks is not None]
    counted = response is None or response.channel is not None or response.looks is not None
    own = _width(analysis) if counted else 0
    joint = [one for one in sides if one.looks and own * one.looks.shows.shape[1] <= MOST_KINDS and own]
    if counted and not joint:
        yield _Pair(analysis, True, None)
    for one in sides:
        yield _Pair(analysis, one in joint, one)


def _width(analysis: Assembled) -> int:
    """How many kinds the outcome has."""
    if analysis.response is not None and analysis.response.looks is not None:
        return analysis.response.looks.shows.shape[1]
    return len(analysis.outcome.answers) or len(_cuts(analysis)) + 1


def _numbers(analysis: Assembled) -> Values:
    """Of each pattern a public outcome, or the report of a private number."""
    if analysis.response is not None:
        return np.asarray(analysis.response.vectors[analysis.cells.reports[analysis.response.name], 0])
    assert analysis.values is not None
    return analysis.values


def _cuts(analysis: Assembled) -> Values:
    """Where an outcome that is a number, or its reports, are cut into parts."""
    return cuts_of(_numbers(analysis), analysis.cells.counts)


def _parts_of(
    analysis: Assembled, cuts: Values | None
) -> Callable[[Array, Mapping[str, Array]], Array] | None:
    """Of linear predictors and a law's own parameters how probable each part of its reports is."""
    channel = analysis.response.channel if analysis.response is not None else None
    if channel is None or cuts is None:
        return None
    law_of = analysis.outcome.law_of
    return jax.jit(lambda eta, own: channel.shares(law_of(eta, own), cuts))


class _Side:
    """One private column: of each pattern its part and what it shows; (parts, answers, kinds) the chances."""

    def __init__(self, looks: Looks, codes: Codes) -> None:
        self.looks = looks
        self.said = codes < len(looks.shows)
        codes = np.where(self.said, codes, 0)
        self.part, self.shows = looks.part[codes], looks.shows[codes]

    def chances(self, sites: Mapping[str, Values], place: int) -> Values:
        """At one draw."""
        found = self.looks.chances.copy()
        for name, slopes in self.looks.unknown.items():
            found += slopes * sites[name][0, place]
        return found


class _Pair:
    """Kinds of reports: what the outcome shows, or one predictor, or both; how many came in each cell."""

    def __init__(self, analysis: Assembled, outcome: bool, predictor: Private | None) -> None:
        self.analysis, cells = analysis, analysis.cells
        response = analysis.response if outcome else None
        self._outcome = _side(analysis, response)
        self._predictor = _side(analysis, predictor)
        self._place = analysis.predictors.index(predictor) if predictor else 0
        # What is seen as it is: a public outcome, and the report of a number.
        self._seen = outcome and self._outcome is None
        self._cuts = _cuts(analysis) if self._seen and not analysis.outcome.answers else None
        self._reported = _parts_of(analysis, self._cuts) if response is not None else None
        shows = [self._outcome.shows] if self._outcome else [self._kind_shown()] if self._seen else []
        shows += [self._predictor.shows] if self._predictor else []
        sides = [side for side in (self._outcome, self._predictor) if side]
        self.exclusive = all(side.looks.exclusive_parts.all() for side in sides)
        self.kinds = int(np.prod([one.shape[1] for one in shows]))
        said = np.logical_and.reduce([np.ones(len(cells.cell), bool), *(side.said for side in sides)])
        self._parts = [len(side.looks.chances) for side in (self._outcome, self._predictor) if side]
        part = np.zeros(len(cells.cell), np.int64)
        for side in sides:
            part = part * len(side.looks.chances) + side.part
        self._take(said, part, shows)

    def _kind_shown(self) -> Values:
        """Of each pattern its choice, or its part of the range, as ones and zeros."""
        values = _numbers(self.analysis)
        if self._cuts is None:
            return np.eye(len(self.analysis.outcome.answers))[values.astype(int)]
        return np.eye(len(self._cuts) + 1)[np.searchsorted(self._cuts, values)]

    def _take(self, said: Mask, part: Codes, shows: list[Values]) -> None:
        """Count what is said by part and cell: sizes (parts, cells) and kinds (cells, kinds)."""
        cells = self.analysis.cells
        combinations = len(self.analysis.law.matrix.combinations)
        whole = MOST_AT_ONCE if self.analysis.number is None else MOST_WITH_PLACES
        most = max(1, whole // (SIMULATED * combinations * self.kinds * self._longer()))
        some = np.arange(len(cells.frame))
        if len(some) > most:
            some = np.sort(np.random.default_rng(0).choice(some, most, replace=False))
        where = np.full(len(cells.frame), -1)
        where[some] = np.arange(len(some))
        said = said & (where[cells.cell] >= 0)
        cell, counts = where[cells.cell[said]], cells.counts[said].astype(np.float64)
        parts = int(np.prod(self._parts)) if self._parts else 1
        # How many reports of each part of the designs came in each cell.
        self._sizes = np.bincount(part[said] * len(some) + cell, counts, parts * len(some))
        self._sizes = self._sizes.reshape(parts, len(some))
        self.frame = cells.frame.iloc[some].reset_index(drop=True)
        self._counts = np.empty((len(some), self.kinds))
        for kind, places in enumerate(np.ndindex(*(one.shape[1] for one in shows))):
            shown = np.prod([one[said, place] for one, place in zip(shows, places, strict=True)], axis=0)
            self._counts[:, kind] = np.bincount(cell, counts * shown, len(some))

    def _longer(self) -> int:
        channel = self.analysis.response.channel if self.analysis.response is not None else None
        return LONGER[channel.noise] if channel is not None and self._reported is not None else 1

    def observed(self, groups: list[Mask]) -> Values:
        """The share of each group's reports that are of each kind."""
        sizes = self._sizes.sum(axis=0)
        shares = [self._counts[group].sum(axis=0) / max(sizes[group].sum(), 1) for group in groups]
        return np.concatenate(shares)

    def simulated(self, sites: dict[str, Values], groups: list[Mask], random: np.random.Generator) -> Values:
        """(draws, groups × kinds): the same of as many people at each draw."""
        choices = max(len(self.analysis.outcome.answers), 1) * len(self.analysis.law.matrix.combinations)
        choices *= HELD if self._reported is not None else 1
        step = max(1, AT_ONCE // (len(self.frame) * choices))
        found = []
        for start in range(0, SIMULATED, step):
            some = {name: values[:, start : start + step] for name, values in sites.items()}
            predicted = Predicted(self.analysis, some)
            shares, eta = predicted.laws(self.frame)
            outcome = self._outcomes(predicted, eta)
            for place in range(len(shares)):
                truths = self._truths(some, place, shares[place], outcome[place])
                found.append(self._drawn(truths, groups, random))
        return np.stack(found)

    def _outcomes(self, predicted: Predicted, eta: Values) -> Values:
        """(draws, cells, combinations, answers or parts of the range)."""
        if self._reported is not None:
            return predicted.reported(eta, self._reported)
        if self._cuts is not None:
            below = predicted.below(eta, self._cuts)
            ends = np.zeros((*below.shape[:-1], 1))
            return np.diff(np.concatenate([ends, below, ends + 1], axis=-1), axis=-1)
        return predicted.expected(eta) if self._outcome or self._seen else np.ones((*eta.shape[:3], 1))

    def _truths(self, sites: Mapping[str, Values], place: int, shares: Values, outcome: Values) -> Truths:
        """At one draw."""
        shown = np.ones((1, shares.shape[-1], 1))
        if self._predictor:
            answers = self.analysis.predictors[self._place].answers
            combinations = self.analysis.law.matrix.combinations
            own = [answers.index(one[self._place]) for one in combinations]
            shown = self._predictor.chances(sites, place)[:, own]
        alike = np.eye(outcome.shape[-1])[None]
        return Truths(shares, outcome, self._outcome.chances(sites, place) if self._outcome else alike, shown)

    def _drawn(self, truths: Truths, groups: list[Mask], random: np.random.Generator) -> Values:
        """(groups × kinds): shares of reports drawn once for each cell, so that groups share their people."""
        came = np.zeros((len(self.frame), self.kinds))
        of_cells = truths.kinds()
        for part, sizes in enumerate(self._sizes.astype(np.int64)):
            cells = np.flatnonzero(sizes)
            if not len(cells):
                continue
            both = divmod(part, len(truths.of_predictor))
            alone = self._alone(both)
            if all(alone):
                laws = np.clip(of_cells[part, cells], 0, 1)
                came[cells] += random.multinomial(sizes[cells], laws / laws.sum(axis=-1, keepdims=True))
            else:
                came[cells] += truths.drawn(both, alone, cells, sizes[cells], of_cells[part, cells], random)
        whole = self._sizes.sum(axis=0)
        return np.concatenate([came[group].sum(axis=0) / max(whole[group].sum(), 1) for group in groups])

    def _alone(self, parts: tuple[int, int]) -> tuple[bool, bool]:
        """Whether each report is of one kind alone, of the outcome and of the predictor."""
        first, second = (
            side is None or bool(side.looks.exclusive_parts[part])
            for side, part in zip((self._outcome, self._predictor), parts, strict=True)
        )
        return first, second


def _side(analysis: Assembled, column: Private | None) -> _Side | None:
    if column is None or column.looks is None:
        return None
    return _Side(column.looks, analysis.cells.reports[column.name])
