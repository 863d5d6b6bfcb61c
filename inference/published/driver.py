"""Runs a kernel's chains side by side, as one compiled program."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.published.base import Kernel, Run
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
    beginning, going = jax.random.split(key)

    def advance(reached: tuple[Any, Array], steps: Array) -> tuple[tuple[Any, Array], Sites]:
        state, made = reached

        def step(index: Array, state: Any) -> Any:
            return kernel.step(jax.random.fold_in(going, index), state, data)

        state = jax.lax.fori_loop(made, made + steps, step, state)
        return (state, made + steps), kernel.sites(state)

    # Warm-up is a longer way to the first draw: so a step is compiled once only.
    steps = jnp.full(run.kept, run.thin).at[0].add(run.warmup)
    _, sites = jax.lax.scan(advance, (kernel.init(beginning, data), jnp.zeros((), int)), steps)
    return sites


def _as_floats(data: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), data)
