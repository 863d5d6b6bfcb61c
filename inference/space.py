"""A model's parameters as one vector of unbounded numbers, where optimisers and approximations work."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn

from inference.models.base import Model

Data = Mapping[str, object]


@dataclass(frozen=True)
class Space:
    """potential: (vector, data) -> −log joint density, up to no constant. sites: (vector, data) -> values.

    start: the moment estimate, (dimension,). All are pure functions that JAX can transform.
    """

    potential: Callable[[Array, Data], Array]
    sites: Callable[[Array, Data], dict[str, Array]]
    start: Array


def space_of(model: Model) -> Space:
    """The unbounded space of a model. Call it, and what it gives, in one setting of JAX's precision."""
    initial = {name: jnp.asarray(value, dtype=float) for name, value in model.initial.items()}
    unbounded = unconstrain_fn(model.program, (), dict(model.data), initial)
    # A prior may leave out what the moments say.
    inside = jax.tree.map(lambda value: jnp.where(jnp.isfinite(value), value, 0.0), unbounded)
    start, unravel = ravel_pytree(inside)

    def potential(vector: Array, data: Data) -> Array:
        return potential_energy(model.program, (), dict(data), unravel(vector))

    def sites(vector: Array, data: Data) -> dict[str, Array]:
        return constrain_fn(model.program, (), dict(data), unravel(vector))

    return Space(potential, sites, start)


def as_arrays(data: Data) -> dict[str, Array]:
    """A model's data as what compiled programs take."""
    return {name: jnp.asarray(np.asarray(value)) for name, value in data.items()}
