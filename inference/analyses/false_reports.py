"""What coefficients and what follows from them may be if a share of the reports was false.

Honest reports of each public cell follow the law at some θ, and false ones, a share f of all, are of any cell
and say anything. The law that fits all reports best is at the θ* where its score s adds up to zero:

    Σ over cells (w − g) E s(cell, report | θ) + Σ g s(cell, report) = 0,

w being the shares of the cells and g those of the false reports, which add up to f and are no more than w.
Given θ*, that is solved for the θ of honest people, with the g that moves a quantity most: reports of the
largest influence on it, cell after cell. The law itself is taken to be right.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro import handlers

from inference.analyses.channels import NO_CHANNEL, all_reports
from inference.analyses.program import Assembled
from inference.analyses.table import Codes, Values
from inference.compiling import Program
from inference.false_reports.functionals import TAILS, around
from inference.models.base import Draws, Model
from inference.results.diagnostics import listed
from inference.results.identified import Bounds, IdentifiedSets
from inference.sampling.space import Space, as_arrays, as_draws, space_of

Evaluated = Callable[[Draws], dict[str, Values]]

# Kinds of reports × coordinates, and quantities: at more, sets would take longer than the fit.
MOST_TERMS, MOST_QUANTITIES = 50_000, 100
# Of Newton's method: steps, the longest, when it has settled, and from where on there is no bound.
STEPS, LONGEST, SETTLED, TOO_FAR = 50, 1.0, 1e-4, 20.0
# Of the choice of false reports: kinds that are tried first, exchanges, what parts of one are tried, and the
# part of the whole way by which others may move a quantity further.
STARTS, EXCHANGES, PARTS, ALIKE = 4, 20, tuple(0.5**power for power in range(8)), 0.02
TINY, SINGULAR, NUDGE = 1e-300, 1e10, 1e-4
GROUPED = "effects that vary by group have no bound that false reports could not pass"
NUMBERS = "a public number can be anything in a false report, so that nothing is bounded"
TOO_MANY = "there are too many kinds of reports to look at each"
WEIGHTED = (
    "averages with weights that reports state in clear have no set: a false report may state the largest, so "
    "that few of them can carry the whole average"
)
OTHERS = (
    "of the others the reports say too little, one of their groups is no larger than that share, or they are "
    "too many to look at each"
)
UNSETTLED = (
    "of {} it was not found how far false reports could move them, as the search for the worst did not settle"
)


def analysis_sets(
    analysis: Assembled,
    sites: Draws,
    draws: Mapping[str, Values],
    evaluated: Evaluated,
    share: float,
    without: Mapping[str, str] = MappingProxyType({}),
) -> IdentifiedSets | None:
    """The set of each parameter and each quantity; None where the share is zero.

    draws: of all that is reported, by name; evaluated: from draws of the sites, those that follow from them.
    without: {quantity that has none: why}.
    """
    if not share:
        return None
    why = _without_sets(analysis)
    if why:
        return IdentifiedSets(share, open=why)
    with jax.enable_x64(True):
        kinds = Kinds.of(analysis)
        space = space_of(kinds.model)
        if len(kinds.cell) * space.dimension > MOST_TERMS:
            return IdentifiedSets(share, open=TOO_MANY)
        sets, unsettled = _sets(kinds, space, sites, draws, evaluated, share)
    gone = [name for name in draws if name not in sets]
    why_not = dict.fromkeys(without.get(name, OTHERS) for name in gone if name not in unsettled)
    said = [UNSETTLED.format(listed(unsettled))] if unsettled else []
    return IdentifiedSets(share, sets, open="; ".join([*said, *sorted(why_not, key=OTHERS.__eq__)]))


def _without_sets(analysis: Assembled) -> str:
    """Why there are none."""
    if analysis.every_group:
        return GROUPED
    if analysis.response is None and not analysis.outcome.answers:
        return NUMBERS
    if any(all_reports(one) is None for one in analysis.privates):
        return NO_CHANNEL
    return ""


@dataclass(frozen=True)
class Kinds:
    """Every kind of report of every cell, in their order. cell: (kinds,). weights: (cells,) shares.

    model: whose reports are one of each kind. logs: inside a program, (kinds,) their log-probabilities.
    """

    cell: Codes
    weights: Values
    model: Model
    logs: Callable[[Mapping[str, Array], Mapping[str, Array]], Array]

    @classmethod
    def of(cls, analysis: Assembled) -> Kinds:
        """All combinations of cells, reports of each private column, and values of a public outcome."""
        vectors = [one for one in map(all_reports, analysis.privates) if one is not None]
        sizes = [len(analysis.cells.frame), *map(len, vectors)]
        public = analysis.response is None
        if public:
            sizes.append(len(analysis.outcome.answers))
        grid = np.asarray(list(product(*map(range, sizes))), np.int64).T
        columns = {
            one.name: replace(one, vectors=own, missing=0)
            for one, own in zip(analysis.privates, vectors, strict=True)
        }
        cells = replace(
            analysis.cells,
            cell=grid[0],
            counts=np.ones(grid.shape[1], np.int64),
            reports={name: grid[1 + place] for place, name in enumerate(columns)},
        )
        every = replace(
            analysis,
            cells=cells,
            response=None if analysis.response is None else columns[analysis.response.name],
            predictors=tuple(columns[one.name] for one in analysis.predictors),
            values=grid[-1].astype(np.float64) if public else analysis.values,
            counted=True,
        )
        model = Model(every.program, every.data(), every.initial(), every.parameters)

        def logs(sites: Mapping[str, Array], data: Mapping[str, Array]) -> Array:
            with handlers.seed(rng_seed=0), handlers.substitute(data=dict(sites)):
                return every.each(dict(data), *every.drawn(dict(data)))

        sizes_of_cells = analysis.cells.sizes.astype(np.float64)
        return cls(grid[0], sizes_of_cells / sizes_of_cells.sum(), model, logs)


def _sets(
    kinds: Kinds,
    space: Space,
    sites: Draws,
    draws: Mapping[str, Values],
    evaluated: Evaluated,
    share: float,
) -> tuple[dict[str, Bounds], list[str]]:
    """{quantity: its set}, and of which the search did not settle."""
    data = as_arrays(kinds.model.data)
    middle = {name: sites[name].mean(axis=(0, 1)) for name in kinds.model.initial}
    start = np.asarray(space.start(as_arrays(middle, float), data))
    moved = _Moved(kinds, space, start, share)

    def at(vectors: Values) -> dict[str, Values]:
        found = as_draws(jax.vmap(space.sites, (0, None))(jnp.asarray(vectors), data))
        return {name: draws[0] for name, draws in evaluated(_one_chain(found)).items()}

    nudges = NUDGE * np.eye(len(start))
    here = at(np.concatenate([start[None], start + nudges, start - nudges]))
    d = len(start)
    slopes = {name: (draws[1 : d + 1] - draws[d + 1 :]) / (2 * NUDGE) for name, draws in here.items()}
    ends: dict[str, list[Values]] = {}
    unsettled = []
    for name in list(here)[:MOST_QUANTITIES]:
        try:
            found = [moved.to(slopes[name], side) for side in (-1, 1)]
        except UnsettledError:
            unsettled.append(name)
        else:
            known = [one for one in found if one is not None]
            ends |= {name: known} if len(known) == len(found) else {}
    if not ends:
        return {}, unsettled
    there = at(np.concatenate(list(ends.values())).reshape(-1, d))
    sets = {
        name: _around(name, draws[name], here[name][0], list(there[name][2 * place : 2 * place + 2]))
        for place, name in enumerate(ends)
    }
    return sets, unsettled


def _one_chain(sites: Draws) -> Draws:
    return {name: values[None] for name, values in sites.items()}


def _around(name: str, draws: Values, here: float, there: list[float]) -> Bounds:
    """The interval of draws, each end moved as far as honest people may be; ratios by their logarithms."""
    interval = tuple(float(end) for end in np.quantile(draws, TAILS))
    most = (-np.inf, np.inf)
    if name.startswith("share "):
        most = (-1.0 if " − " in name else 0.0, 1.0)
    if name.startswith("odds ratio"):
        low, high = (end * one / here for end, one in zip(interval, there, strict=True))
    else:
        low, high = (end + one - here for end, one in zip(interval, there, strict=True))
    return around(low, high, (interval[0], interval[1]), most)


class UnsettledError(Exception):
    """The search for the end of a set did not settle."""


class _Honest(NamedTuple):
    """Where honest people are, the scores that their cells expect, and the slopes of the mean score."""

    at: Values
    expected: Values
    turn: Values


class _Moved:
    """Where honest people may be, given where all reports put the law."""

    def __init__(self, kinds: Kinds, space: Space, start: Values, share: float) -> None:
        self._kinds, self._start, self._share = kinds, start, share
        data = as_arrays(kinds.model.data)
        logs = lambda vector: kinds.logs(space.sites(vector, data), data)  # noqa: E731
        self._law = Program(lambda vector: (logs(vector), jax.jacfwd(logs)(vector)), runs_once=True)
        self._scores = np.asarray(self._law(jnp.asarray(start))[1])

    def to(self, slope: Values, side: int) -> Values | None:
        """The end on one side (−1, 1) of a quantity with this slope; None where there is none.

        slope: (coordinates,) of the quantity. Of the few kinds of reports that move it most at first, the one
        that moves it furthest is taken; others are exchanged for it, all at once or in part, until none move
        it further (Frank and Wolfe 1956). Raises UnsettledError where that has no end.
        """
        far = lambda one: float(side * slope @ (one.at - self._start))  # noqa: E731
        false = np.zeros(len(self._scores))
        here = self._solved(false, self._start)
        if here is None:
            return None
        gains = side * self._gains(here, slope)
        tried = [self._false(gains, first) for first in np.argsort(-gains)[:STARTS]]
        for _ in range(EXCHANGES):
            found = [(one, self._solved(one, here.at)) for one in tried]
            known = [(one, there) for one, there in found if there is not None]
            if len(known) < len(found):
                return None
            false, here = max(known, key=lambda pair: far(pair[1]))
            gains = side * self._gains(here, slope)
            worse = self._false(gains)
            if float((worse - false) @ gains) <= ALIKE * max(far(here), 0.0):
                return here.at
            tried = [self._further(false, worse, here, far)]
        raise UnsettledError

    def _further(
        self, false: Values, worse: Values, here: _Honest, far: Callable[[_Honest], float]
    ) -> Values:
        """False reports part of which are exchanged for others, that move the quantity further."""
        for part in PARTS:
            mixed = false + part * (worse - false)
            there = self._solved(mixed, here.at)
            if there is None or far(there) > far(here):
                return mixed
        raise UnsettledError

    def _solved(self, false: Values, at: Values) -> _Honest | None:
        """Where honest people are with these false reports, by Newton's method; None where nowhere near."""
        weights = self._kinds.weights - np.bincount(self._kinds.cell, false, len(self._kinds.weights))
        for _ in range(STEPS):
            logs, slopes = (np.asarray(one) for one in self._law(jnp.asarray(at)))
            chances = np.exp(logs)
            expected = (chances[:, None] * self._scores).reshape(len(weights), -1, len(at)).sum(axis=1)
            turn = self._turn(weights, chances, slopes)
            if turn is None:
                return None
            step = -np.linalg.solve(turn, weights @ expected + false @ self._scores)
            moved = float(np.abs(step).max())
            at = at + step * min(1.0, LONGEST / max(moved, TINY))
            if not np.abs(at - self._start).max() < TOO_FAR:
                return None
            if moved < SETTLED:
                return _Honest(at, expected, turn)
        raise UnsettledError

    def _gains(self, here: _Honest, slope: Values) -> Values:
        """How far a false report of each kind, for an honest one of its cell, moves a quantity."""
        return np.asarray(
            -(self._scores - here.expected[self._kinds.cell]) @ np.linalg.solve(here.turn.T, slope)
        )

    def _turn(self, weights: Values, chances: Values, slopes: Values) -> Values | None:
        """The derivative of the mean score of so many reports of each cell; None where it is singular."""
        turn = self._scores.T @ ((weights[self._kinds.cell] * chances)[:, None] * slopes)
        sound = np.isfinite(turn).all() and np.linalg.cond(turn) < SINGULAR
        return np.asarray(turn) if sound else None

    def _false(self, gains: Values, first: int | None = None) -> Values:
        """The shares (kinds,) of false reports: of each cell the kind that gains most, best cells first.

        first: a kind that is taken before all others.
        """
        found, left = np.zeros(len(gains)), self._share
        taken: set[int] = set()
        order = np.argsort(-gains)
        for kind in order if first is None else [first, *order]:
            cell = int(self._kinds.cell[kind])
            if cell in taken:
                continue
            taken.add(cell)
            found[kind] = min(left, self._kinds.weights[cell])
            left -= found[kind]
            if left <= 0:
                break
        return found
