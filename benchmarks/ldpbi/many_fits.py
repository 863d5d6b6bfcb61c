"""Posteriors of many data sets of one question, from one compiled program.

One NUTS chain each, one after the other: side by side all would wait for the longest trajectory at every step
(measured on the normal model: five times slower).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from numpyro.infer import NUTS, init_to_value
from numpyro.infer.hmc import HMCState

from inference.models.base import Model

Draws = Mapping[str, NDArray[np.float64]]
WARMUP, KEPT = 250, 300


def posteriors_of(models: Sequence[Model], warmup: int = WARMUP, kept: int = KEPT) -> list[Draws]:
    """{parameter: draws (kept,)} of each model; all must come from one study, so that only data differ."""
    first = models[0]
    with jax.enable_x64(True):
        data = {name: jnp.stack([jnp.asarray(model.data[name]) for model in models]) for name in first.data}
        starts = {
            name: jnp.stack([jnp.asarray(model.initial[name], dtype=float) for model in models])
            for name in first.initial
        }
        keys = jax.random.split(jax.random.key(0), len(models))
        chain = partial(_chain, first, warmup, kept)
        sites = jax.jit(lambda *many: jax.lax.map(lambda one: chain(*one), many))(keys, starts, data)
        found = {name: np.asarray(value) for name, value in sites.items()}
    jax.clear_caches()
    return [first.parameters({name: value[i] for name, value in found.items()}) for i in range(len(models))]


def _chain(
    model: Model, warmup: int, kept: int, key: Array, start: dict[str, Array], data: dict[str, Array]
) -> dict[str, Array]:
    kernel = NUTS(model.program, init_strategy=init_to_value(values=start), dense_mass=True, max_tree_depth=8)
    state = kernel.init(key, warmup, None, (), data)

    def step(state: HMCState, _: None) -> tuple[HMCState, dict[str, Array]]:
        state = kernel.sample(state, (), data)
        return state, state.z

    state, _ = jax.lax.scan(lambda state, _: (step(state, _)[0], None), state, length=warmup)
    _, draws = jax.lax.scan(step, state, length=kept)
    return jax.vmap(kernel.postprocess_fn((), data))(draws)
