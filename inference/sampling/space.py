"""A model's parameters as one vector of unbounded numbers, where samplers and optimisers work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn

from inference.models.base import Draws, Model
from inference.sampling.redrawing import Redraw, redrawing

Arrays = Mapping[str, Array]


@dataclass(frozen=True)
class Space:
    """Pure functions of a model that JAX can transform; the data are arguments, not part of the program.

    potential: (vector, data) -> −log joint density. sites: (vector, data) -> {site: value}.
    start: (initial values, data) -> vector, at the moment estimate. dimension: length of a vector.
    redraw: (vector, key, data) -> vector, a jump that leaves the posterior what it is, where one is needed.
    """

    potential: Callable[[Array, Arrays], Array]
    sites: Callable[[Array, Arrays], dict[str, Array]]
    start: Callable[[Arrays, Arrays], Array]
    dimension: int
    redraw: Redraw | None = None


def space_of(model: Model) -> Space:
    """The unbounded space of a model. Call it, and what it gives, in one setting of JAX's precision."""
    program, coordinates = model.program, model.coordinates

    def unbounded(initial: Arrays, data: Arrays) -> dict[str, Array]:
        # A prior may leave out what the moments say.
        values = unconstrain_fn(program, (), dict(data), dict(initial))
        return coordinates.inverse(
            jax.tree.map(lambda value: jnp.where(jnp.isfinite(value), value, 0.0), values)
        )

    shapes = jax.eval_shape(unbounded, as_arrays(model.initial, float), as_arrays(model.data))
    flat, unravel = ravel_pytree(jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes))

    def potential(vector: Array, data: Arrays) -> Array:
        values, log_volume = coordinates.forward(unravel(vector))
        return potential_energy(program, (), dict(data), values) - log_volume

    def sites(vector: Array, data: Arrays) -> dict[str, Array]:
        values, _ = coordinates.forward(unravel(vector))
        return constrain_fn(program, (), dict(data), values, return_deterministic=True)

    def start(initial: Arrays, data: Arrays) -> Array:
        return ravel_pytree(unbounded(initial, data))[0]

    redraw = redrawing(program, model.redrawn, unravel, potential) if model.redrawn else None
    return Space(potential, sites, start, len(flat), redraw)


def as_arrays(values: Mapping[str, object], dtype: type | None = None) -> dict[str, Array]:
    """A model's data or initial values as what compiled programs take."""
    return {name: jnp.asarray(np.asarray(value), dtype=dtype) for name, value in values.items()}


def as_draws(values: Mapping[str, Array]) -> Draws:
    """What compiled programs gave, as a model's draws."""
    return {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}
