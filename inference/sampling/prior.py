"""Independent draws from a model's prior."""

from __future__ import annotations

from typing import Any

import jax
from jax import Array
from numpyro import handlers

from inference.compiling import Program, raw_key
from inference.models.base import Draws, Model
from inference.sampling.space import Arrays, as_arrays, as_draws

PRIOR_DRAWS = 1000


class PriorDraws:
    """Draws of a model's parameters before any data; their program compiles while something else is done."""

    def __init__(self, model: Model, seed: int, draws: int = PRIOR_DRAWS) -> None:
        with jax.enable_x64(True):
            self._arguments = (raw_key(seed), as_arrays(model.data))
            each = jax.vmap(lambda key, data: prior_sites(model, key, data), in_axes=(0, None))
            self._program = Program(
                lambda key, data: each(jax.random.split(key, draws), data), runs_once=True
            )
            self._program.prepare(*self._arguments)

    def sites(self) -> Draws:
        """{site: (draws, …)}."""
        with jax.enable_x64(True):
            return as_draws(self._program(*self._arguments))


def sample_prior(model: Model, seed: int, draws: int = PRIOR_DRAWS) -> Draws:
    """Independent draws of a model's parameters before any data: {site: (draws, …)}."""
    return PriorDraws(model, seed, draws).sites()


def prior_sites(model: Model, key: Array, data: Arrays) -> dict[str, Array]:
    """Draw every site once from the prior, with all values that follow from them."""
    trace: dict[str, Any] = handlers.trace(handlers.seed(model.program, key)).get_trace(**data)
    return {
        name: site["value"]
        for name, site in trace.items()
        if site["type"] == "deterministic" or (site["type"] == "sample" and not site["is_observed"])
    }
