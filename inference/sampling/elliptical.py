"""Generalised elliptical slice sampling, for smooth posteriors whose curvature changes too much for NUTS.

Murray, Adams, MacKay 2010; Nishihara, Murray, Adams 2014. A move turns from where the chain is towards a
draw of a t law at the posterior's centre, with the posterior's shape, as far as the density allows. There is
no step to tune, and nothing diverges; a move costs a few densities and no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from inference.compiling import Program
from inference.models.base import Draws, Model
from inference.sampling.chains import has_processors, in_threads, stacked
from inference.sampling.space import Arrays, Space, as_arrays, as_draws, space_of
from inference.sampling.whitening import Shape, finite, reshaped, shape_of

Values = NDArray[np.float64]

# Of the t law: so heavy tails hold those of any posterior.
FREEDOM = 5.0
# Moves for one draw that is kept.
MOVES = 32
# Draws of one call of the program: it divides every phase.
LENGTH = 100
# Draws of each warm-up phase, after which the draws themselves say where the centre is and what the shape.
WARMUP = (100, 100, 200)
MOST_SHRUNK = 60


class Place(NamedTuple):
    """Of one chain: its randomness, and where it is."""

    key: Any
    vector: Any


class Elliptical:
    """Chains of one model: `side_by_side` each of its own data, or else of the same, on all processors."""

    def __init__(self, model: Model, side_by_side: bool) -> None:
        self.space: Space = space_of(model)
        self._slope = jax.jit(jax.value_and_grad(self.space.potential))
        self._start = jax.jit(self.space.start)
        alone = not side_by_side and has_processors()
        own = 0 if side_by_side else None
        beside = Program(self._chain if alone else jax.vmap(self._chain, in_axes=(0, own, own, own)))
        self._advance = in_threads(beside) if alone else beside

    def shape(self, model: Model, data: Arrays) -> Shape:
        """The mode, and the widths that the curvature there says."""
        start = np.asarray(self._start(as_arrays(model.initial, float), data))
        return shape_of(finite(lambda vector: self._slope(vector, data)), start)

    def run(self, place: Place, shape: Shape, data: Arrays, count: int) -> tuple[Place, Values]:
        """Vectors (chains, count, d) from where the chains are; count: a multiple of LENGTH is drawn."""
        parts = []
        for _ in range(-(-count // LENGTH)):
            place, vectors = self._advance(place, shape.centre, shape.factor, data)
            parts.append(np.asarray(vectors, np.float64))
        return place, np.concatenate(parts, axis=1)[:, :count]

    def _chain(self, place: Place, centre: Array, factor: Array, data: Arrays) -> tuple[Place, Array]:
        def height(white: Array) -> Array:
            reference = (FREEDOM + len(white)) / 2 * jnp.log1p(white @ white / FREEDOM)
            found = reference - self.space.potential(centre + factor @ white, data)
            return jnp.where(jnp.isnan(found), -jnp.inf, found)

        def draw(state: tuple[Array, Array], key: Array) -> Any:
            state = jax.lax.fori_loop(
                0, MOVES, lambda move, now: _moved(jax.random.fold_in(key, move), now, height), state
            )
            return state, centre + factor @ state[0]

        key, own_key = jax.random.split(place.key)
        white = jnp.linalg.solve(factor, place.vector - centre)
        _, vectors = jax.lax.scan(draw, (white, height(white)), jax.random.split(own_key, LENGTH))
        return Place(key, vectors[-1]), vectors


def _moved(key: Array, state: tuple[Array, Array], height: Callable[[Array], Array]) -> tuple[Array, Array]:
    """One move on the ellipse through the chain's place and a draw of the reference law."""
    white, here = state
    scale_key, draw_key, level_key, angle_key = jax.random.split(key, 4)
    freedom = (FREEDOM + len(white)) / 2
    scale = (FREEDOM + white @ white) / 2 / jax.random.gamma(scale_key, freedom)
    other = jnp.sqrt(scale) * jax.random.normal(draw_key, white.shape)
    level = here + jnp.log(jax.random.uniform(level_key))
    first = 2 * jnp.pi * jax.random.uniform(angle_key)

    def place(angle: Array) -> tuple[Array, Array]:
        at = white * jnp.cos(angle) + other * jnp.sin(angle)
        return at, height(at)

    def shrunk(search: tuple[Any, ...]) -> tuple[Any, ...]:
        step, low, high, angle, _, _ = search
        low, high = jnp.where(angle < 0, angle, low), jnp.where(angle < 0, high, angle)
        angle = jax.random.uniform(jax.random.fold_in(angle_key, step), minval=low, maxval=high)
        return step + 1, low, high, angle, *place(angle)

    search = (1, first - 2 * jnp.pi, first, first, *place(first))
    outside = lambda search: (search[-1] < level) & (search[0] < MOST_SHRUNK)  # noqa: E731
    *_, at, found = jax.lax.while_loop(outside, shrunk, search)
    good = found >= level
    return jnp.where(good, at, white), jnp.where(good, found, here)


def sample(
    model: Model, seed: int, chains: int, kept: int, rounds: int, enough: Callable[[Draws], bool]
) -> Draws:
    """{site: (chains, draws, …)}: `kept` draws of each chain, again until enough, `rounds` times at most."""
    with jax.enable_x64(True):
        data, own = as_arrays(model.data), Elliptical(model, side_by_side=False)
        shape = own.shape(model, data)
        white = np.random.default_rng(seed).normal(size=(chains, len(shape.centre)))
        place = Place(jax.random.split(jax.random.key(seed), chains), shape.centre + shape.stretch(white))
        for phase in WARMUP:
            place, moved = own.run(place, shape, data, phase)
            shape = reshaped(shape, moved)
        sites_of = Program(jax.vmap(jax.vmap(own.space.sites, (0, None)), (0, None)), runs_once=True)
        parts: list[Draws] = []
        for _ in range(rounds):
            place, moved = own.run(place, shape, data, kept)
            parts.append(as_draws(sites_of(moved, data)))
            found = {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}
            if enough(found):
                break
        return found


class ManyElliptical:
    """One chain for each of many data sets, side by side."""

    def __init__(self, model: Model, seed: int) -> None:
        self._seed, self._chains = seed, Elliptical(model, side_by_side=True)
        self._sites = jax.jit(jax.vmap(jax.vmap(self._chains.space.sites, in_axes=(0, None))))

    def draws(self, models: Sequence[Model], numbers: NDArray[np.intp], count: int) -> Draws:
        """Sites {site: (models, count, …)}; numbers (models,): of each data set, for its randomness."""
        data = [as_arrays(model.data) for model in models]
        shapes = [self._chains.shape(model, one) for model, one in zip(models, data, strict=True)]
        together = stacked(data)
        keys = jax.vmap(partial(jax.random.fold_in, jax.random.key(self._seed)))(numbers)
        place = Place(keys, np.stack([shape.centre for shape in shapes]))
        for phase in WARMUP:
            place, moved = self._chains.run(place, _together(shapes), together, phase)
            shapes = [reshaped(shape, own) for shape, own in zip(shapes, moved, strict=True)]
        _, moved = self._chains.run(place, _together(shapes), together, count)
        return {name: np.asarray(value) for name, value in self._sites(moved, together).items()}


def _together(shapes: Sequence[Shape]) -> Shape:
    return Shape(np.stack([shape.centre for shape in shapes]), np.stack([shape.factor for shape in shapes]))
