"""A model's parameters as one vector of unbounded numbers, in which samplers and optimisers work; its prior.

Single coordinates can be redrawn from their prior, for posteriors that gradients cross badly: if a share may
be zero or positive, its posterior has a narrow region next to a very wide one. Paths that follow gradients
seldom find the way between them; a jump from the prior, accepted by Metropolis's rule, does. The posterior
stays unchanged.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.distributions import Distribution
from numpyro.infer.util import constrain_fn, potential_energy, unconstrain_fn

from inference.compiling import Program, raw_key
from inference.models.base import Draws, Model

Arrays = Mapping[str, Array]
Potential = Callable[[Array, Arrays], Array]
# (vector, key, data) -> vector.
Redraw = Callable[[Array, Array, Arrays], Array]

# Coordinates redrawn in each transition, all of few as often as fits: each costs one likelihood.
MOST_REDRAWN = 16


def redrawing(
    program: Callable[..., None], site: str, unravel: Callable[[Array], Any], potential: Potential
) -> Redraw:
    """Redraws of the coordinates of `site`, unbounded and a priori independent given the other sites.

    unravel: vector -> {site: unbounded value}. potential: −log joint density of a vector.
    """

    def prior(vector: Array, data: Arrays) -> Distribution:
        values = constrain_fn(program, (), dict(data), unravel(vector))
        known = handlers.seed(handlers.substitute(program, data=values), jax.random.key(0))
        law: Distribution = handlers.trace(known).get_trace(**data)[site]["fn"]
        return law

    def redraw(vector: Array, key: Array, data: Arrays) -> Array:
        own = unravel(jnp.arange(len(vector), dtype=vector.dtype))[site].astype(int)
        law = prior(vector, data)
        draw_key, order_key, keep_key = jax.random.split(key, 3)
        sweeps = max(MOST_REDRAWN // len(own), 1)
        order = jax.random.permutation(order_key, len(own))[:MOST_REDRAWN]
        values = law.sample(draw_key, (sweeps,))[:, order].ravel()
        levels = jnp.log(jax.random.uniform(keep_key, values.shape))

        def misfit(at: Array) -> Array:
            """−log likelihood: of what differs in this site alone."""
            return potential(at, data) + law.log_prob(at[own])

        def one(state: tuple[Array, Array], proposal: tuple[Array, Array, Array]) -> Any:
            at, old = state
            place, value, level = proposal
            there = at.at[place].set(value)
            new = misfit(there)
            # Not-a-number is never better.
            better = level < old - new
            return (jnp.where(better, there, at), jnp.where(better, new, old)), None

        proposals = jnp.tile(own[order], sweeps), values, levels
        return jax.lax.scan(one, (vector, misfit(vector)), proposals)[0][0]

    return redraw


@dataclass(frozen=True)
class Space:
    """Pure functions of a model that JAX can transform; the data are arguments, not part of the program.

    potential: (vector, data) -> −log joint density. sites: (vector, data) -> {site: value}. start: (initial
    values, data) -> vector, at the moment estimate. dimension: length of a vector. redraw: (vector, key,
    data) -> vector, a jump that keeps the posterior, for models that need one.
    """

    potential: Callable[[Array, Arrays], Array]
    sites: Callable[[Array, Arrays], dict[str, Array]]
    start: Callable[[Arrays, Arrays], Array]
    dimension: int
    redraw: Redraw | None = None


def space_of(model: Model) -> Space:
    """Return the unbounded space of a model. Call it, and its results, in one setting of JAX's precision."""
    program, coordinates = model.program, model.sampling.coordinates

    def unbounded(initial: Arrays, data: Arrays) -> dict[str, Array]:
        # A prior may omit sites that the moments give.
        values = unconstrain_fn(program, (), dict(data), dict(initial))
        return coordinates.inverse(
            jax.tree.map(lambda value: jnp.where(jnp.isfinite(value), value, 0.0), values)
        )

    shapes = jax.eval_shape(unbounded, as_arrays(model.initial, float), as_arrays(model.data))
    dimension, unravel = unravelling(shapes)

    def potential(vector: Array, data: Arrays) -> Array:
        values, log_volume = coordinates.forward(unravel(vector))
        return potential_energy(program, (), dict(data), values) - log_volume

    def sites(vector: Array, data: Arrays) -> dict[str, Array]:
        values, _ = coordinates.forward(unravel(vector))
        return constrain_fn(program, (), dict(data), values, return_deterministic=True)

    def start(initial: Arrays, data: Arrays) -> Array:
        return ravel_pytree(unbounded(initial, data))[0]

    redrawn = model.sampling.redrawn
    redraw = redrawing(program, redrawn, unravel, potential) if redrawn else None
    return Space(potential, sites, start, dimension, redraw)


def unravelling(shapes: Any) -> tuple[int, Callable[[Array], Any]]:
    """The length of the vector that `ravel_pytree` makes of a tree of these shapes, and the way back.

    Its own way back comes with the vector, whose making is some programs to compile.
    """
    leaves, tree = jax.tree.flatten(shapes)
    ends = np.cumsum([int(np.prod(leaf.shape)) for leaf in leaves])

    def unravel(vector: Array) -> Any:
        parts = jnp.split(vector, ends[:-1])
        return jax.tree.unflatten(
            tree, [part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True)]
        )

    return int(ends[-1]), unravel


def as_arrays(values: Mapping[str, object], dtype: type | None = None) -> dict[str, Array]:
    """A model's data or initial values as what compiled programs take."""
    # JAX would compile a program for each other type.
    return {name: jax.device_put(np.asarray(value, dtype=dtype)) for name, value in values.items()}


def as_draws(values: Mapping[str, Array]) -> Draws:
    """Convert the output of compiled programs to a model's draws."""
    return {name: np.asarray(value, dtype=np.float64) for name, value in values.items()}


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


def reports_site(model: Model, sites: Mapping[str, Any], data: Arrays, key: Any = 0) -> dict[str, Any]:
    """Return the program's observed site at these values of the others: its law is `fn`."""
    placed = handlers.substitute(handlers.seed(model.program, key), dict(sites))
    site: dict[str, Any] = handlers.trace(placed).get_trace(**data)["reports"]
    return site


def prior_sites(model: Model, key: Array, data: Arrays) -> dict[str, Array]:
    """Draw every site once from the prior, with all values that follow from them."""
    trace: dict[str, Any] = handlers.trace(handlers.seed(model.program, key)).get_trace(**data)
    return {
        name: site["value"]
        for name, site in trace.items()
        if site["type"] == "deterministic" or (site["type"] == "sample" and not site["is_observed"])
    }
