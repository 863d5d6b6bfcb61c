"""Posteriors of many simulated data sets of one question: one program, compiled once, side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from inference.models.base import Model
from inference.sampling import Chains
from inference.space import Arrays, as_arrays, space_of

Parameters = dict[str, NDArray[np.float64]]

WARMUP = 250
# All wait for the one that takes the most steps: here at most 63.
TREE_DEPTH = 6
# What a compiled program holds in memory at once.
SIDE_BY_SIDE = 50


def posterior_draws(
    models: Sequence[Model],
    seed: int,
    draws: int,
    thin: int,
    progress: Callable[[int], None] = lambda _done: None,
) -> Parameters:
    """{parameter: (models, draws)}: one NUTS chain for each model, every `thin`-th of its draws.

    The models are those of one question under different summaries. progress: told how many are done.
    """
    width = min(SIDE_BY_SIDE, len(models))
    parts = []
    with jax.enable_x64(True):
        chains = Chains(space_of(models[0]), WARMUP, draws * thin, TREE_DEPTH)
        run = jax.jit(jax.vmap(chains.whole))
        keys = jax.random.split(jax.random.key(seed), len(models))
        for start in range(0, len(models), width):
            # The last ones stand more than once, so that the program need not be compiled again.
            index = np.minimum(np.arange(start, start + width), len(models) - 1)
            batch = [models[i] for i in index]
            initial = _stacked([as_arrays(model.initial, float) for model in batch])
            sites = run(keys[index], initial, _stacked([as_arrays(model.data) for model in batch]))
            found = {name: np.asarray(value)[:, thin - 1 :: thin] for name, value in sites.items()}
            parts.append(models[0].parameters(found))
            progress(min(start + width, len(models)))
    jax.clear_caches()
    return {name: np.concatenate([part[name] for part in parts])[: len(models)] for name in parts[0]}


def _stacked(parts: Sequence[Arrays]) -> Arrays:
    return {name: jnp.stack([part[name] for part in parts]) for name in parts[0]}
