"""Posteriors of many simulated studies of one question: one program, compiled once, side by side.

A batch's randomness follows from the seed and the studies' numbers, and its size is fixed. So its numbers do
not depend on what ran before it.
"""

from collections.abc import Callable, Sequence

import jax
import numpy as np
from numpy.typing import NDArray

from inference.compiling import compiled, raw_key
from inference.design.simulation import simulate
from inference.models import model_for
from inference.models.base import Model, Truth
from inference.sampling.chains import Chains, frozen, stacked, starts
from inference.sampling.space import as_arrays, space_of
from inference.sampling.whitening import reshaped, shape_of
from ldp_client import mechanism_for
from schemas import Question
from summaries.progress import Step

Parameters = dict[str, NDArray[np.float64]]

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


def fit_studies(
    question: Question,
    cells: Sequence[tuple[int, Truth]],
    seed: int,
    draws: int,
    thin: int,
    line: str,
    progress: Callable[[str], None],
    part: tuple[int, int] = (0, 1),
    clip: bool = True,
) -> tuple[Parameters, Model]:
    """Simulate and fit studies of one question.

    Args:
        question: the question.
        cells: the number of answers and the truth of each study.
        seed: of the simulations and the chains.
        draws: how many draws of each chain are kept.
        thin: of so many draws one is kept.
        line: progress in words, with {} for how many studies are fitted.
        progress: is called with sentences on the progress.
        part: the number of this call, and how many calls there are.
        clip: as for `simulate`.

    Returns:
        {parameter: (studies, draws)}, and the first study's model.
    """

    def tell(fitted: int, share: float) -> None:
        progress(Step(line.format(fitted), part[0] + share, part[1]))

    mechanism, count, models = mechanism_for(question), len(cells), []
    for place, (n, truth) in enumerate(cells):
        tell(0, SIMULATION * place / count)
        # The place-th generator that `numpy.random.default_rng(seed).spawn` gives.
        random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(place,)))
        models.append(model_for(question, simulate(question, mechanism, truth, n, random, clip)))
    fitted = posterior_draws(
        models, seed, draws, thin, lambda done: tell(done, SIMULATION + (1 - SIMULATION) * done / count)
    )
    return fitted, models[0]


def posterior_draws(
    models: Sequence[Model],
    seed: int,
    draws: int,
    thin: int = 1,
    fitted: Callable[[int], None] = lambda _count: None,
) -> Parameters:
    """Return {parameter: (models, draws)}: one NUTS chain for each model, every `thin`-th of its draws.

    The models are of one question under different summaries. fitted: is told how many are fitted.
    """
    first, width = models[0], min(MOST_SIDE_BY_SIDE, len(models))
    warmup, depth = (WINDING_WARMUP, WINDING_DEPTH) if first.sampling.winding else (WARMUP, TREE_DEPTH)
    count, parts = draws * thin, []
    with jax.enable_x64(True):
        space = space_of(first)
        chains = Chains(space, LENGTH, separate=True, tree_depth=depth)
        start, sites_of = compiled(space.start), compiled(jax.vmap(jax.vmap(space.sites, in_axes=(0, None))))
        for begin in range(0, len(models), width):
            # 1. Start each chain near its own posterior. The last model is repeated, so that the program need
            # not be compiled again.
            numbers = np.minimum(np.arange(begin, begin + width), len(models) - 1)
            batch = [models[number] for number in numbers]
            data = [as_arrays(model.data) for model in batch]
            shapes, vectors = [], []
            for model, own, number in zip(batch, data, numbers, strict=True):
                slope, middle = chains.slope_at(own), start(as_arrays(model.initial, float), own)
                shapes.append(shape_of(slope, np.asarray(middle)))
                vectors.append(starts(slope, shapes[-1], np.random.default_rng([seed, number]), 1)[0])
            keys = jax.vmap(lambda number: jax.random.fold_in(raw_key(seed), number))(numbers)
            together, vector = stacked(data), np.stack(vectors)
            # 2. Warm up.
            for phase in warmup:
                factors = np.stack([shape.factor for shape in shapes])
                state = chains.begin(vector, keys, factors, together)
                target = first.sampling.target_acceptance
                state, moved = chains.run(state, factors, together, phase, adapt=True, target=target)
                vector, keys = np.asarray(state.vector), state.key
                shapes = [reshaped(shape, own) for shape, own in zip(shapes, moved.vectors, strict=True)]
            # 3. Draw.
            moved = chains.run(frozen(state), factors, together, -(-count // LENGTH) * LENGTH)[1]
            sites = sites_of(np.asarray(moved.vectors[:, :count], np.float64), together)
            thinned = {name: np.asarray(value)[:, thin - 1 :: thin] for name, value in sites.items()}
            end = min(begin + width, len(models))
            parts.append({name: own[: end - begin] for name, own in first.parameters(thinned).items()})
            fitted(end)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def poor_chains(draws: Parameters) -> dict[str, NDArray[np.bool_]]:
    """{parameter: (models,)}: whether the chain has too few effective draws of it, or never moved."""
    from arviz_stats.base.array import array_stats

    effective = {
        name: array_stats.ess(found[:, None], chain_axis=1, draw_axis=2, method="bulk")
        for name, found in draws.items()
    }
    return {name: ~(found >= FEWEST_EFFECTIVE) for name, found in effective.items()}
