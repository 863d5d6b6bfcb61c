"""How far false reports move a law's parameters, by the reports of the most influence.

Where a share f of all reports is one report z, and the others follow the law at θ, the likelihood is largest
at the θ* for which (1 − f) Σ P(cell | θ) s(cell) + f s(z) = 0, s being the score at θ*. Given θ*, where the
reports put the law, that is solved for the θ of honest people, for the z whose influence (Hampel 1974) on
each parameter is largest, on either side. Parameters are moved where they are unbounded: a positive one by
its logarithm.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.distributions.transforms import Transform

from inference.compiling import Program
from inference.false_reports.functionals import TAILS, around
from inference.likelihoods.common import CellCounts
from inference.models.base import Draws, Model
from inference.results.identified import Bounds
from inference.sampling.space import Arrays, as_arrays

Vector = NDArray[np.float64]

# Of Newton's method, which has settled when it still moves by less.
STEPS, SETTLED = 12, 1e-5
TINY, SINGULAR = 1e-300, 1e10
# Unbounded: a step by which a positive parameter becomes e times another, or a place leaves the bounds.
TOO_FAR = 1.0


class Cells(NamedTuple):
    """names: of the sites. transforms: from unbounded numbers. law: those (sites,) -> P(cell), and slopes."""

    names: tuple[str, ...]
    transforms: tuple[Transform, ...]
    law: Callable[[Vector], tuple[Vector, Vector]]

    @classmethod
    def of(cls, model: Model, sites: Draws) -> Cells | None:
        """None where reports are not counted by cell, or where a site has several entries."""
        at = {name: np.asarray(draws[0, 0]) for name, draws in sites.items()}
        if any(value.ndim for value in at.values()):
            return None
        data = as_arrays(model.data)
        trace = _trace(model, as_arrays(at, float), data)
        if not isinstance(trace["reports"]["fn"], CellCounts):
            return None
        names = tuple(at)
        transforms = tuple(biject_to(trace[name]["fn"].support) for name in names)

        def chances(unbounded: Array) -> Array:
            moved = {name: one(u) for name, one, u in zip(names, transforms, unbounded)}
            found: Array = _trace(model, moved, data)["reports"]["fn"].cell_probs
            return found

        both = Program(lambda unbounded: (chances(unbounded), jax.jacfwd(chances)(unbounded)), runs_once=True)

        def law(unbounded: Vector) -> tuple[Vector, Vector]:
            cells, slopes = both(jnp.asarray(unbounded))
            return np.asarray(cells), np.asarray(slopes)

        return cls(names, transforms, law)

    def path(self, start: Vector, place: int, side: int, share: float) -> float | None:
        """How far from where all reports put a site, `start`, honest people may be, to one side of it.

        side: 1 where false reports pushed it down, −1 where up. None where reports say too little of it.
        """
        chances, slopes = self.law(start)
        scores = slopes / np.maximum(chances, TINY)[:, None]
        at, pushed = start, share / (1 - share) * scores
        for _ in range(STEPS):
            chances, slopes = self.law(at)
            turn = slopes.T @ scores
            if not np.isfinite(turn).all() or np.linalg.cond(turn) > SINGULAR:
                return None
            moves = -np.linalg.solve(turn.T, (chances @ scores + pushed).T)
            worst = int(np.argmax(side * moves[place]))
            moved = float(np.abs(moves[:, worst]).max())
            if moved > TOO_FAR:
                return None
            at = at + moves[:, worst]
            if moved < SETTLED:
                return float(at[place] - start[place])
        return None


def _trace(model: Model, sites: Arrays, data: Arrays) -> dict[str, Any]:
    placed = handlers.substitute(handlers.seed(model.program, jax.random.key(0)), data=dict(sites))
    return handlers.trace(placed).get_trace(**data)


def law_sets(model: Model, sites: Draws, share: float) -> dict[str, Bounds]:
    """{parameter: its set in own units}, of a law whose parameters are a site each; of those with bounds."""
    with jax.enable_x64(True):
        cells = Cells.of(model, sites)
        if cells is None:
            return {}
        draws = [
            np.asarray(one.inv(jnp.asarray(sites[name])), np.float64)
            for name, one in zip(cells.names, cells.transforms)
        ]
        start = np.asarray([one.mean() for one in draws])
        ends: dict[str, list[float]] = {}
        for place, (name, own) in enumerate(zip(cells.names, draws)):
            ways = [cells.path(start, place, side, share) for side in (-1, 1)]
            if None not in ways:
                moved = [end + way for end, way in zip(np.quantile(own, TAILS), ways) if way is not None]
                ends[name] = [float(cells.transforms[place](jnp.asarray(one))) for one in moved]
    return {name: _in_own_units(model, sites, name, both) for name, both in ends.items()}


def _in_own_units(model: Model, sites: Draws, name: str, ends: list[float]) -> Bounds:
    here = {other: draws[0, 0] for other, draws in sites.items()}
    moved = [float(model.parameters({**here, name: np.asarray(end)})[name]) for end in ends]
    low, high = np.quantile(model.parameters(sites)[name], TAILS)
    return around(min(moved), max(moved), (float(low), float(high)), (-np.inf, np.inf))
