"""Check that reports look as the fitted law predicts: their frequencies, overall and within columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import jax
import numpy as np
from jax import Array

from inference.analyses.cells import cuts_of
from inference.analyses.channel import Channel
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.subgroups import MOST_GROUPS, Mask, groups_of
from inference.analyses.table import Codes, Private, Values
from inference.analyses.trends import against_columns
from inference.analyses.whole_reports import Truths
from inference.models.base import Draws as Sites
from inference.results.predictive import Predictive, Unchecked

SIMULATED = 60
# Kinds expected less than once are not judged, unless at least MANY reports of the kind arrived.
RARE, MANY = 1.0, 10.0
# The most kinds of reports of two columns together. With more, each column is checked alone.
MOST_KINDS = 64
AT_ONCE, MOST_AT_ONCE = 2_000_000, 20_000_000
# For a private number: values in memory for each law, and its cost relative to a law of choices.
HELD, LONGER = 60, {"laplace": 4, "gaussian": 40}
FEW = "the law itself was not checked: there are too few reports"


def checked(
    analysis: Assembled, prior: Sites | None, posterior: Sites, seed: int, by: str | None = None
) -> Predictive | Unchecked:
    """Return shares of reports, simulated and observed; Unchecked if reports are too few.

    A private outcome is checked by its reports, and a private number by parts of its reports' range. A public
    choice is checked by its choices, and a public number by its distance from what the fit expects by public
    columns. Each private predictor is checked with the outcome, and its reports along each other column.
    prior: {site: (draws, …)}, None under flat priors, which expect anything. posterior: {site: (chains,
    draws, …)}. by: a column to group by first.
    """
    random = np.random.default_rng(seed)
    middles, sites = _middles(analysis, posterior), _some(posterior, 2)
    pairs = list(_pairs(analysis, middles))
    found = [_compared(one, sites, random, by) for one in pairs]
    kept = np.concatenate([one.kept for one in found])
    after, observed = _together(found, kept)
    people, against = _people(found, kept), against_columns(analysis, sites, middles)
    if not kept.any():
        return Unchecked(FEW, against)
    if prior is None:
        return Predictive(random.random(after.shape), after, observed, people=people, against=against)
    sites = _some(prior, 1)
    if not _is_public(analysis):
        before, _ = _together([_compared(one, sites, random, by) for one in pairs], kept)
        return Predictive(before, after, observed, people=people, against=against)
    # A wide prior is far from what a fit expects, so it is compared with the number's own range.
    pairs = list(_pairs(analysis, np.zeros(len(analysis.cells.frame))))
    found = [_compared(one, sites, random, by) for one in pairs]
    before, came = _together(found, np.concatenate([one.kept for one in found]))
    if not came.size:
        return Unchecked(FEW, against)
    return Predictive(before, after, observed, people=people, before=came, against=against)


class _Comparison(NamedTuple):
    """Hold the simulated and observed shares of a pair's kinds in groups of people.

    simulated: (draws, groups × kinds). kept: the entries that can be judged. groups: their names.
    """

    simulated: Values
    observed: Values
    kept: Mask
    groups: list[str]


def _together(found: list[_Comparison], kept: Mask) -> tuple[Values, Values]:
    """Return what was simulated, and what was observed, for all pairs."""
    simulated = np.concatenate([one.simulated for one in found], axis=-1)
    return simulated[:, kept], np.concatenate([one.observed for one in found])[kept]


def _people(found: list[_Comparison], kept: Mask) -> dict[int, str]:
    """Return {the first kept entry of a group: the group's name}."""
    groups = [(place, name) for place, one in enumerate(found) for name in one.groups]
    each = [one.kept.size // len(one.groups) for one in found]
    every = [group for group in groups for _ in range(each[group[0]])]
    named = [group for group, keep in zip(every, kept, strict=True) if keep]
    starts = [at for at, group in enumerate(named) if not at or group != named[at - 1]]
    return {at: named[at][1] for at in starts}


def _compared(
    pair: _Pair, sites: dict[str, Values], random: np.random.Generator, by: str | None
) -> _Comparison:
    most = MOST_GROUPS // max(pair.kinds - pair.exclusive, 1)
    named = list(groups_of(pair.frame, pair.people, by, most))
    groups = [mask for _, mask in named]
    observed = pair.observed(groups)
    simulated = pair.simulated(sites, groups, random)
    people = np.repeat([pair.people[group].sum() for group in groups], pair.kinds)
    kept = (simulated.mean(axis=0) * people >= RARE) | (observed * people >= MANY)
    if pair.exclusive:
        # If each report is of exactly one kind, the last kind's share follows from the others.
        kept[pair.kinds - 1 :: pair.kinds] = False
    return _Comparison(simulated, observed, kept, [name for name, _ in named])


def _some(sites: Sites, axes: int) -> dict[str, Values]:
    """Return some evenly spaced draws as one chain: {site: (1, draws, …)}."""
    flat = {name: values.reshape(-1, *values.shape[axes:]) for name, values in sites.items()}
    places = np.linspace(0, len(next(iter(flat.values()))) - 1, SIMULATED).astype(int)
    return {name: values[places][None] for name, values in flat.items()}


def _is_public(analysis: Assembled) -> bool:
    """Return True if the outcome is a public number."""
    return analysis.response is None and not analysis.outcome.answers


def _pairs(analysis: Assembled, middles: Values) -> Iterator[_Pair]:
    """Yield the outcome paired with each private predictor, or each alone if the pair cannot be counted.

    middles: (cells,) that are subtracted from a public number.
    """
    parts = _parts_about(analysis, middles) if _is_public(analysis) else None
    own = _width(analysis, parts)
    joint = [one for one in analysis.predictors if own * one.choices.shows.shape[1] <= MOST_KINDS]
    if not joint:
        yield _Pair(analysis, parts, True, None)
    for one in analysis.predictors:
        yield _Pair(analysis, parts, one in joint, one)


def _width(analysis: Assembled, parts: _Parts | None) -> int:
    """Return the number of kinds of the outcome."""
    if analysis.response is not None and analysis.response.number is None:
        return analysis.response.choices.shows.shape[1]
    return len(analysis.outcome.answers) or len(parts.cuts if parts else _cuts(analysis)) + 1


class _Parts(NamedTuple):
    """Parts of a public number's range around each cell's middle.

    middles: (cells,). cuts: where the distances from the middles are cut.
    """

    middles: Values
    cuts: Values

    def shown(self, values: Values, cell: Codes) -> Values:
        """Return the part of each pattern, one-hot."""
        return np.eye(len(self.cuts) + 1)[np.searchsorted(self.cuts, values - self.middles[cell])]


def _parts_about(analysis: Assembled, middles: Values) -> _Parts:
    cells, values = analysis.cells, analysis.values
    assert values is not None
    return _Parts(middles, cuts_of(values - middles[cells.cell], cells.counts))


def _middles(analysis: Assembled, posterior: Sites) -> Values:
    """Return each cell's expected mean. Distances from it show the number's law despite public columns."""
    values = analysis.values
    if values is None or not _is_public(analysis):
        return np.zeros(len(analysis.cells.frame))
    expected = Predicted(analysis, _some(posterior, 2)).means(analysis.cells.frame)[:, 0]
    # Clip to the observed range: extreme draws may expect anything.
    return np.clip(np.nan_to_num(expected), values.min(), values.max())


def _cuts(analysis: Assembled) -> Values:
    """Return the cuts that divide the reports of a private number into parts."""
    return cuts_of(_reported_numbers(analysis), analysis.cells.counts)


def _reported_numbers(analysis: Assembled) -> Values:
    """Return the report of each pattern, of a private number."""
    assert analysis.response is not None
    assert analysis.response.number is not None
    return analysis.response.number.reports[analysis.cells.reports[analysis.response.name]]


def _parts_of(analysis: Assembled, cuts: Values) -> Callable[[Array, Mapping[str, Array]], Array]:
    """Return a function from linear predictors and a law's own parameters to the probability of each part."""
    channel = analysis.response.number if analysis.response is not None else None
    assert channel is not None
    law_of = analysis.outcome.law_of
    return jax.jit(lambda eta, own: channel.shares(law_of(eta, own), cuts))


class _Side:
    """One private column: each pattern's part and kind of report, and chances (parts, answers, kinds)."""

    def __init__(self, channel: Channel, codes: Codes) -> None:
        self.channel, self.said = channel, codes >= 0
        self.part, self.shows = channel.part[codes], channel.shows[codes].astype(np.float64)

    def chances(self, sites: Mapping[str, Values], place: int) -> Values:
        """Return the chances at one draw."""
        drawn = {name: values[0, place] for name, values in sites.items()}
        return np.asarray(self.channel.mixed(self.channel.chances, drawn))


class _Pair:
    """Kinds of reports: features of the outcome, one predictor, or both, with their count in each cell."""

    def __init__(
        self, analysis: Assembled, parts: _Parts | None, outcome: bool, predictor: Private | None
    ) -> None:
        self.analysis, cells = analysis, analysis.cells
        response = analysis.response if outcome else None
        self._outcome = _side(analysis, response)
        self._predictor = _side(analysis, predictor)
        self._place = analysis.predictors.index(predictor) if predictor else 0
        # A public outcome and the report of a number are observed directly.
        self._seen = outcome and self._outcome is None
        self._about = parts if self._seen else None
        cuts = _cuts(analysis) if self._seen and response is not None else None
        self._reported = _parts_of(analysis, cuts) if cuts is not None else None
        shows = [self._outcome.shows] if self._outcome else [self._kind_shown(cuts)] if self._seen else []
        shows += [self._predictor.shows] if self._predictor else []
        sides = [side for side in (self._outcome, self._predictor) if side]
        self.exclusive = all(side.channel.exact for side in sides)
        self.kinds = int(np.prod([one.shape[1] for one in shows]))
        said = np.logical_and.reduce([np.ones(len(cells.cell), bool), *(side.said for side in sides)])
        self._parts = [len(side.channel.odds) for side in (self._outcome, self._predictor) if side]
        part = np.zeros(len(cells.cell), np.int64)
        for side in sides:
            part = part * len(side.channel.odds) + side.part
        self._take(said, part, shows)

    def _kind_shown(self, cuts: Values | None) -> Values:
        """Return each pattern's choice, or its part of the range, one-hot."""
        analysis, cells = self.analysis, self.analysis.cells
        if cuts is not None:
            return np.eye(len(cuts) + 1)[np.searchsorted(cuts, _reported_numbers(analysis))]
        assert analysis.values is not None
        if self._about is not None:
            return self._about.shown(analysis.values, cells.cell)
        return np.eye(len(analysis.outcome.answers))[analysis.values.astype(int)]

    def _take(self, said: Mask, part: Codes, shows: list[Values]) -> None:
        """Count reports by part and cell: sizes (parts, cells) and kinds (cells, kinds)."""
        cells = self.analysis.cells
        combinations = len(self.analysis.law.matrix.combinations)
        most = max(1, MOST_AT_ONCE // (SIMULATED * combinations * self.kinds * self._longer()))
        some = np.arange(len(cells.frame))
        if len(some) > most:
            some = np.sort(np.random.default_rng(0).choice(some, most, replace=False))
        where = np.full(len(cells.frame), -1)
        where[some] = np.arange(len(some))
        said = said & (where[cells.cell] >= 0)
        cell, counts = where[cells.cell[said]], cells.counts[said].astype(np.float64)
        parts = int(np.prod(self._parts)) if self._parts else 1
        # The number of reports of each part of the designs in each cell.
        self._sizes = np.bincount(part[said] * len(some) + cell, counts, parts * len(some))
        self._sizes = self._sizes.reshape(parts, len(some))
        self.people = self._sizes.sum(axis=0)
        self.frame = cells.frame.iloc[some].reset_index(drop=True)
        about = self._about
        self._cuts = about.middles[some][:, None, None] + about.cuts if about is not None else None
        self._counts = np.empty((len(some), self.kinds))
        for kind, places in enumerate(np.ndindex(*(one.shape[1] for one in shows))):
            shown = np.prod([one[said, place] for one, place in zip(shows, places, strict=True)], axis=0)
            self._counts[:, kind] = np.bincount(cell, counts * shown, len(some))

    def _longer(self) -> int:
        channel = self.analysis.response.number if self.analysis.response is not None else None
        return LONGER[channel.noise] if channel is not None and self._reported is not None else 1

    def observed(self, groups: list[Mask]) -> Values:
        """Return the share of each kind in each group's reports."""
        shares = [self._counts[group].sum(axis=0) / max(self.people[group].sum(), 1) for group in groups]
        return np.concatenate(shares)

    def simulated(self, sites: dict[str, Values], groups: list[Mask], random: np.random.Generator) -> Values:
        """Return the same shares (draws, groups × kinds), simulated at each draw for as many people."""
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
        """Return (draws, cells, combinations, answers or parts of the range)."""
        if self._reported is not None:
            return predicted.reported(eta, self._reported)
        if self._cuts is not None:
            below = predicted.below(eta, self._cuts)
            ends = np.zeros((*below.shape[:-1], 1))
            return np.diff(np.concatenate([ends, below, ends + 1], axis=-1), axis=-1)
        return predicted.expected(eta) if self._outcome or self._seen else np.ones((*eta.shape[:3], 1))

    def _truths(self, sites: Mapping[str, Values], place: int, shares: Values, outcome: Values) -> Truths:
        """Return the laws at one draw."""
        shown = np.ones((1, shares.shape[-1], 1))
        if self._predictor:
            answers = self.analysis.predictors[self._place].answers
            combinations = self.analysis.law.matrix.combinations
            own = [answers.index(one[self._place]) for one in combinations]
            shown = self._predictor.chances(sites, place)[:, own]
        alike = np.eye(outcome.shape[-1])[None]
        return Truths(shares, outcome, self._outcome.chances(sites, place) if self._outcome else alike, shown)

    def _drawn(self, truths: Truths, groups: list[Mask], random: np.random.Generator) -> Values:
        """Return shares (groups × kinds) of reports, drawn once for each cell so that groups share people."""
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
        return np.concatenate(
            [came[group].sum(axis=0) / max(self.people[group].sum(), 1) for group in groups]
        )

    def _alone(self, parts: tuple[int, int]) -> tuple[bool, bool]:
        """Return whether each report is of one kind alone, for the outcome and for the predictor."""
        first, second = (
            side is None or bool(side.channel.exclusive[part])
            for side, part in zip((self._outcome, self._predictor), parts, strict=True)
        )
        return first, second


def _side(analysis: Assembled, column: Private | None) -> _Side | None:
    if column is None or column.number is not None:
        return None
    return _Side(column.choices, analysis.cells.reports[column.name])
