"""Check that reports look as the fitted law predicts: their frequencies, overall and within columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import jax
import numpy as np

from inference.analyses.cells import cuts_of
from inference.analyses.channel import Channel
from inference.analyses.predicted import Predicted
from inference.analyses.program import Assembled
from inference.analyses.subgroups import MOST_GROUPS, Mask, groups_of
from inference.analyses.table import Codes, Values
from inference.analyses.trends import against_columns
from inference.analyses.whole_reports import Truths
from inference.models.base import Draws as Sites
from inference.predicting import SIMULATED, some_draws
from inference.results.predictive import Predictive, Unchecked

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
    sites = _one_chain(posterior, 2)
    is_public = analysis.response is None and not analysis.outcome.answers
    middles = _middles(analysis, sites) if is_public else np.zeros(len(analysis.cells.frame))
    pairs = _pairs(analysis, middles)
    found = [_compared(analysis, *pair, sites, random, by) for pair in pairs]
    against = tuple(against_columns(analysis, sites, middles))
    kept = np.concatenate([one.kept for one in found])
    if not kept.any():
        return Unchecked(FEW, against)
    after, observed = _together(found, kept)
    people = _people(found)
    if prior is None or is_public:
        # The default prior of a public number is scaled to the number itself.
        return Predictive(random.random(after.shape), after, observed, people=people, against=against)
    found = [_compared(analysis, *pair, _one_chain(prior, 1), random, by) for pair in pairs]
    before, _ = _together(found, kept)
    return Predictive(before, after, observed, people=people, against=against)


def _one_chain(sites: Sites, axes: int) -> dict[str, Values]:
    """Return some draws as one chain: {site: (1, draws, …)}."""
    return {name: values[None] for name, values in some_draws(sites, axes).items()}


def _middles(analysis: Assembled, sites: Sites) -> Values:
    """Return each cell's expected mean. Distances from it show the number's law despite public columns."""
    assert analysis.values is not None
    expected = Predicted(analysis, sites).means(analysis.cells.frame)[:, 0]
    # Clip to the observed range: extreme draws may expect anything.
    return np.clip(np.nan_to_num(expected), analysis.values.min(), analysis.values.max())


class _Side(NamedTuple):
    """One column's kinds of reports.

    said: (patterns,) whether there is a report. part: (patterns,) its part of the design. shows: (patterns,
    kinds) whether it is of that kind. exclusive: (parts,) whether each report is of one kind alone. chances:
    {site: value} of one draw -> P(kind | answer), (parts, answers, kinds).
    """

    said: Mask
    part: Codes
    shows: Values
    exclusive: Mask
    chances: Callable[[Mapping[str, Values]], Values]


def _seen(kinds: Codes, count: int, answers: Values) -> _Side:
    """Return the side of a column that is observed directly. answers: (answers, kinds), 0 or 1."""
    said, part = np.ones(len(kinds), bool), np.zeros(len(kinds), np.int64)
    return _Side(said, part, np.eye(count)[kinds], np.ones(1, bool), lambda _sites: answers[None])


def _behind(channel: Channel, codes: Codes, answers: Sequence[int] | slice) -> _Side:
    """Return the side of a private column with these reports. answers: in the order of the law."""

    def chances(sites: Mapping[str, Values]) -> Values:
        return np.asarray(channel.mixed(channel.chances, sites))[:, answers]

    shows = channel.shows[codes].astype(np.float64)
    return _Side(codes >= 0, channel.part[codes], shows, channel.exclusive, chances)


class _Outcome(NamedTuple):
    """The outcome's kinds, and the law of what decides them: its answers, or the kinds themselves.

    law: (prediction, linear predictors, cells) -> (draws, cells, combinations, answers). longer, held: its
    cost and memory relative to a law of choices.
    """

    side: _Side
    law: Callable[[Predicted, Values, Codes], Values]
    longer: int = 1
    held: int = 1


def _outcome(analysis: Assembled, middles: Values) -> _Outcome:
    """Return the outcome. middles: (cells,) that are subtracted from a public number."""
    cells, response, values = analysis.cells, analysis.response, analysis.values
    if response is not None and response.number is None:
        side = _behind(response.choices, cells.reports[response.name], slice(None))
        return _Outcome(side, lambda predicted, eta, _cells: predicted.expected(eta))
    if response is not None and response.number is not None:
        channel, law = response.number, analysis.outcome.law
        reports = channel.reports[cells.reports[response.name]]
        cuts = cuts_of(reports, cells.counts)
        parts = jax.jit(lambda eta, own: channel.shares(law.at(eta[..., 0], own), cuts))
        side = _seen(np.searchsorted(cuts, reports), len(cuts) + 1, np.eye(len(cuts) + 1))
        longer = LONGER[channel.noise]
        return _Outcome(side, lambda predicted, eta, _cells: predicted.reported(eta, parts), longer, HELD)
    assert values is not None
    if analysis.outcome.answers:
        count = len(analysis.outcome.answers)
        side = _seen(values.astype(int), count, np.eye(count))
        return _Outcome(side, lambda predicted, eta, _cells: predicted.expected(eta))
    away = values - middles[cells.cell]
    cuts = cuts_of(away, cells.counts)

    def parts_of(predicted: Predicted, eta: Values, some: Codes) -> Values:
        below = predicted.below(eta, middles[some][:, None, None] + cuts)
        ends = np.zeros((*below.shape[:-1], 1))
        return np.diff(np.concatenate([ends, below, ends + 1], axis=-1), axis=-1)

    return _Outcome(_seen(np.searchsorted(cuts, away), len(cuts) + 1, np.eye(len(cuts) + 1)), parts_of)


def _pairs(analysis: Assembled, middles: Values) -> list[tuple[_Outcome, _Side]]:
    """Return the outcome paired with each private predictor, or each alone if the pair cannot be counted."""
    cells, combinations = analysis.cells, analysis.law.matrix.combinations
    outcome, nothing = _outcome(analysis, middles), np.zeros(len(cells.cell), np.int64)
    no_outcome = _Outcome(
        _seen(nothing, 1, np.ones((1, 1))), lambda _predicted, eta, _cells: np.ones((*eta.shape[:3], 1))
    )
    pairs, joint = [], False
    for place, predictor in enumerate(analysis.predictors):
        answers = [predictor.answers.index(one[place]) for one in combinations]
        side = _behind(predictor.choices, cells.reports[predictor.name], answers)
        fits = outcome.side.shows.shape[1] * side.shows.shape[1] <= MOST_KINDS
        pairs.append((outcome if fits else no_outcome, side))
        joint = joint or fits
    return pairs if joint else [(outcome, _seen(nothing, 1, np.ones((len(combinations), 1)))), *pairs]


class _Comparison(NamedTuple):
    """Hold the simulated and observed shares of a pair's kinds in groups of people.

    simulated: (draws, groups × kinds). kept: the entries that can be judged. groups: their names.
    """

    simulated: Values
    observed: Values
    kept: Mask
    groups: list[str]


def _compared(
    analysis: Assembled,
    outcome: _Outcome,
    second: _Side,
    sites: dict[str, Values],
    random: np.random.Generator,
    by: str | None,
) -> _Comparison:
    """Compare the joint kinds of an outcome and a predictor. sites: {site: (1, draws, …)}."""
    cells, first, combinations = analysis.cells, outcome.side, len(analysis.law.matrix.combinations)
    kinds = first.shows.shape[1] * second.shows.shape[1]
    exclusive = bool(first.exclusive.all() and second.exclusive.all())
    # 1. Take some cells if there are very many.
    most = max(1, MOST_AT_ONCE // (SIMULATED * combinations * kinds * outcome.longer))
    some = np.arange(len(cells.frame))
    if len(some) > most:
        some = np.sort(np.random.default_rng(0).choice(some, most, replace=False))
    where = np.full(len(cells.frame), -1)
    where[some] = np.arange(len(some))
    frame = cells.frame.iloc[some].reset_index(drop=True)
    # 2. Count people by parts of the designs and by cell, and reports by cell and by kind.
    said = first.said & second.said & (where[cells.cell] >= 0)
    cell, counts = where[cells.cell[said]], cells.counts[said].astype(np.float64)
    parts = len(first.exclusive) * len(second.exclusive)
    part = (first.part * len(second.exclusive) + second.part)[said]
    sizes = np.bincount(part * len(some) + cell, counts, parts * len(some)).reshape(parts, len(some))
    shown = product(first.shows.T, second.shows.T)
    came = np.stack([np.bincount(cell, counts * (a * b)[said], len(some)) for a, b in shown], axis=1)
    # 3. Add them up in groups of people, which share simulated reports.
    of_cells = sizes.sum(axis=0)
    named = list(groups_of(frame, of_cells, by, MOST_GROUPS // max(kinds - exclusive, 1)))
    groups = np.stack([mask for _, mask in named]).astype(np.float64)
    people = groups @ of_cells
    observed = (groups @ came / np.maximum(people, 1)[:, None]).ravel()
    # 4. Simulate the reports of as many people at each draw.
    answers = max(len(analysis.outcome.answers), 1) * combinations * outcome.held
    step, simulated = max(1, AT_ONCE // (len(frame) * answers)), []
    for start in range(0, SIMULATED, step):
        predicted = Predicted(analysis, {name: one[:, start : start + step] for name, one in sites.items()})
        shares, eta = predicted.laws(frame)
        for place, law in enumerate(outcome.law(predicted, eta, some)):
            at = {name: values[0, start + place] for name, values in sites.items()}
            truths = Truths(shares[place], law, first.chances(at), second.chances(at))
            reports = truths.reports(sizes.astype(np.int64), first.exclusive, second.exclusive, random)
            simulated.append((groups @ reports / np.maximum(people, 1)[:, None]).ravel())
    # 5. Judge the entries with enough reports. Of exclusive kinds, the last follows from the others.
    expected = np.mean(simulated, axis=0) * np.repeat(people, kinds)
    kept = (expected >= RARE) | (observed * np.repeat(people, kinds) >= MANY)
    if exclusive:
        kept[kinds - 1 :: kinds] = False
    return _Comparison(np.stack(simulated), observed, kept, [name for name, _ in named])


def _together(found: list[_Comparison], kept: Mask) -> tuple[Values, Values]:
    """Return what was simulated, and what was observed, for all pairs."""
    simulated = np.concatenate([one.simulated for one in found], axis=-1)
    return simulated[:, kept], np.concatenate([one.observed for one in found])[kept]


def _people(found: list[_Comparison]) -> dict[int, str]:
    """Return {the first kept entry of a group: the group's name}."""
    people: dict[int, str] = {}
    place = 0
    for one in found:
        for name, kept in zip(one.groups, np.split(one.kept, len(one.groups)), strict=True):
            if kept.any():
                people[place] = name
            place += int(kept.sum())
    return people
