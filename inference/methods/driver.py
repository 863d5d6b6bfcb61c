"""Runs a kernel's chains side by side, as one compiled program."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax import Array

from inference.methods.base import Kernel, Run
from inference.sampling import Sampled

Sites = dict[str, Array]


def run_kernel(kernel: Kernel, data: Any, run: Run) -> Sampled:
    """Draws of all chains: {site: (chains, kept, …)}. Data of the same shapes are not compiled again."""
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(run.seed), run.chains)
        length = run._replace(seed=0)
        sites = jax.block_until_ready(_program(kernel, length)(keys, _as_floats(data)))
    drawn = {name: np.asarray(value, dtype=np.float64) for name, value in sites.items()}
    return Sampled(drawn, np.zeros((run.chains, run.kept), dtype=bool))


@lru_cache(maxsize=32)
def _program(kernel: Kernel, run: Run) -> Callable[[Array, Any], Sites]:
    return jax.jit(jax.vmap(lambda key, data: one_chain(kernel, key, data, run), in_axes=(0, None)))


def one_chain(kernel: Kernel, key: Array, data: Any, run: Run) -> Sites:
    """Sites (kept, …) of one chain after its warm-up: a pure function, for many data sets at once."""

    def step(state: Any, key: Array) -> tuple[Any, None]:
        return kernel.step(key, state, data), None

    def kept(state: Any, key: Array) -> tuple[Any, Sites]:
        state, _ = jax.lax.scan(step, state, jax.random.split(key, run.thin))
        return state, kernel.sites(state)

    beginning, warming, keeping = jax.random.split(key, 3)
    state, _ = jax.lax.scan(step, kernel.init(beginning, data), jax.random.split(warming, run.warmup))
    _, sites = jax.lax.scan(kept, state, jax.random.split(keeping, run.kept))
    return sites


def _as_floats(data: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), data)
