"""Posteriors of many simulated studies of one question: one program, compiled once, side by side.

A batch's randomness follows from the seed and the studies' numbers, and its size is fixed. So its numbers do
not depend on what ran before it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import Array
from numpy.typing import NDArray

from inference.compiling import compiled, raw_key
from inference.models.base import Model
from inference.sampling.chains import Chains, frozen, stacked, starts
from inference.sampling.space import Arrays, as_arrays, space_of
from inference.sampling.whitening import Shape, reshaped, shape_of
from summaries.progress import Step

Parameters = dict[str, NDArray[np.float64]]
Progress = Callable[[str], None]
# {statistic: {parameter: array (studies, …)}}.
Measured = Mapping[str, Mapping[str, NDArray[Any]]]

# Draws of one call of the program, and of each warm-up phase.
LENGTH = 50
WARMUP = (50, 100)
# All chains wait for the chain with the most steps: here at most 63, or 255 for winding posteriors.
TREE_DEPTH = 6
# With the other settings 40 % of 20 studies of a number without a law mixed poorly (100,000 devices).
WINDING_WARMUP, WINDING_DEPTH = (50, 100, 200), 8
# The most models that a compiled program holds in memory at once.
MOST_SIDE_BY_SIDE = 50
# A chain with fewer effective draws than these gives rough quantiles and ranks.
FEWEST_EFFECTIVE = 25.0
# For the estimate of the remaining time: simulating a study takes about this share, fitting the rest.
SIMULATION = 0.1


@dataclass(frozen=True)
class Studies:
    """Simulated studies of one question, which one program fits.

    Attributes:
        model: returns the model of the study with this number.
        count: how many studies.
        seed: of the chains.
        draws: how many draws of each chain are kept.
        thin: of so many draws one is kept.
        measured: reduces the draws of the studies with these numbers to statistics.
        said: progress in words, with {} for how many studies are fitted.
    """

    model: Callable[[int], Model]
    count: int
    seed: int
    draws: int
    thin: int
    measured: Callable[[range, Parameters], Measured]
    said: str


def fit_studies(each: Sequence[Studies], progress: Progress = lambda _line: None) -> list[Measured]:
    """Fit all studies of each question, and return their statistics; progress is called for all together."""
    total = sum(len(batches_of(studies.count)) for studies in each)
    done = 0
    found = []
    for studies in each:
        first = studies.model(0)
        fits = Batches(first, studies.count, studies.seed, studies.draws, studies.thin)
        parts = []
        for places in batches_of(studies.count):
            models: list[Model] = []
            for place in places:
                share = SIMULATION * len(models) / len(places)
                progress(Step(studies.said.format(places.start), done + share, total))
                models.append(studies.model(place) if place else first)
            parts.append(studies.measured(places, fits.draws(models, places)))
            done += 1
        progress(Step(studies.said.format(studies.count), done, total))
        found.append(_joined(parts))
    return found


def _joined(parts: Sequence[Measured]) -> Measured:
    return {
        what: {name: np.concatenate([part[what][name] for part in parts]) for name in parameters}
        for what, parameters in parts[0].items()
    }


def posterior_draws(models: Sequence[Model], seed: int, draws: int, thin: int = 1) -> Parameters:
    """Return {parameter: (models, draws)}: one NUTS chain for each model, every `thin`-th of its draws.

    The models are of one question under different summaries.
    """
    batches = Batches(models[0], len(models), seed, draws, thin)
    parts = [batches.draws([models[i] for i in places], places) for places in batches_of(len(models))]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def batches_of(count: int) -> list[range]:
    """Return which of so many models are fitted together: a model's numbers depend only on this."""
    return [range(at, min(at + MOST_SIDE_BY_SIDE, count)) for at in range(0, count, MOST_SIDE_BY_SIDE)]


class Batches:
    """The models of one question, which are fitted batch by batch with one program, in any order.

    first: the first of all `count` models, whose data have the same shapes. seed, draws, thin: as of
    `posterior_draws`.
    """

    def __init__(self, first: Model, count: int, seed: int, draws: int, thin: int = 1) -> None:
        self._first, self._seed, self._draws, self._thin = first, seed, draws, thin
        self._width, winding = min(MOST_SIDE_BY_SIDE, count), first.sampling.winding
        self._warmup = WINDING_WARMUP if winding else WARMUP
        with jax.enable_x64(True):
            space = space_of(first)
            depth = WINDING_DEPTH if winding else TREE_DEPTH
            self._chains = Chains(space, LENGTH, separate=True, tree_depth=depth)
            self._start = compiled(space.start)
            self._sites = compiled(jax.vmap(jax.vmap(space.sites, in_axes=(0, None))))

    def draws(self, models: Sequence[Model], places: Sequence[int]) -> Parameters:
        """Return {parameter: (models, draws)} of one batch; places: of its models among all."""
        # The last model is repeated, so that the program need not be compiled again.
        index = np.minimum(np.arange(self._width), len(models) - 1)
        with jax.enable_x64(True):
            sites = self._sites_of([models[i] for i in index], np.asarray(places)[index])
            thinned = {
                name: np.asarray(value)[:, self._thin - 1 :: self._thin] for name, value in sites.items()
            }
            return {name: value[: len(models)] for name, value in self._first.parameters(thinned).items()}

    def _sites_of(self, models: Sequence[Model], numbers: NDArray[np.intp]) -> Mapping[str, Array]:
        """Return sites {site: (models, draws, …)}; numbers (models,): of each, for its randomness."""
        # 1. Start each chain near its own posterior.
        data = [as_arrays(model.data) for model in models]
        shapes = [self._shape(model, one) for model, one in zip(models, data, strict=True)]
        begin = [
            starts(self._chains.slope_at(one), shape, np.random.default_rng([self._seed, number]), 1)[0]
            for one, shape, number in zip(data, shapes, numbers, strict=True)
        ]
        keys = jax.vmap(lambda number: jax.random.fold_in(raw_key(self._seed), number))(numbers)
        together, vectors = stacked(data), np.stack(begin)
        # 2. Warm up.
        for phase in self._warmup:
            factors = np.stack([shape.factor for shape in shapes])
            state = self._chains.begin(vectors, keys, factors, together)
            target = self._first.sampling.target_acceptance
            state, moved = self._chains.run(state, factors, together, phase, adapt=True, target=target)
            vectors, keys = np.asarray(state.vector), state.key
            shapes = [reshaped(shape, own) for shape, own in zip(shapes, moved.vectors, strict=True)]
        # 3. Draw.
        count = self._draws * self._thin
        moved = self._chains.run(frozen(state), factors, together, -(-count // LENGTH) * LENGTH)[1]
        return self._sites(np.asarray(moved.vectors[:, :count], np.float64), together)

    def _shape(self, model: Model, data: Arrays) -> Shape:
        start = np.asarray(self._start(as_arrays(model.initial, float), data))
        return shape_of(self._chains.slope_at(data), start)


def poor_chains(draws: Parameters) -> dict[str, NDArray[np.bool_]]:
    """{parameter: (models,)}: whether the chain has too few effective draws of it, or never moved."""
    from arviz_stats.base.array import array_stats

    effective = {
        name: array_stats.ess(found[:, None], chain_axis=1, draw_axis=2, method="bulk")
        for name, found in draws.items()
    }
    return {name: ~(found >= FEWEST_EFFECTIVE) for name, found in effective.items()}
