"""Drawing from a model with NUTS, and from its prior."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import gcd
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular
from numpy.typing import NDArray
from numpyro import handlers
from numpyro.infer.hmc import HMCState, hmc

from inference.mode import Mode, find_mode
from inference.models.base import Draws, Model
from inference.space import Arrays, Space, as_arrays, space_of

CHAINS = 4
WARMUP = 1000
KEPT = 1000
MOST_ROUNDS = 4
TARGET_ACCEPTANCE = 0.9
# About a known mode only the step size is to be found, and little curvature is left to be careful of.
SHORT_WARMUP, ACCEPTANCE_ABOUT_MODE = 300, 0.8
# The mode's metric is dense: beyond these dimensions it costs more than it saves.
MOST_WITH_MODE = 512
# How far chains start from a known mode, in sds of the Gaussian there.
AROUND = 2.0
# Models of more dimensions have a diagonal mass matrix, and a processor for each chain: side by side, all
# chains would wait for the longest of their trajectories.
MOST_DENSE = 128
# How far chains start from the moment estimate, in unbounded space.
NEARBY = 0.2
PRIOR_DRAWS = 1000


@dataclass(frozen=True)
class Sampled:
    """sites: {site: draws (chains, draws, …)}; diverging: (chains, draws); reasons not to trust them."""

    sites: Draws
    diverging: NDArray[np.bool_]
    reasons: tuple[str, ...] = ()


def sample(
    model: Model,
    seed: int,
    warmup: int = WARMUP,
    kept: int = KEPT,
    enough: Callable[[Draws], bool] = lambda _sites: True,
) -> Sampled:
    """Four vectorised NUTS chains in float64; the same seed on the same machine gives the same draws.

    While what was drawn is not `enough`, the chains go on for `kept` draws more, three times at most.
    A peaked model's chains have a shorter warm-up.
    """
    with jax.enable_x64(True):
        space, data = space_of(model), as_arrays(model.data)
        peaked = model.peaked and space.dimension <= MOST_WITH_MODE
        mode = _mode(model, space, data) if peaked else None
        warmup = warmup if mode is None else min(warmup, SHORT_WARMUP)
        chains = Chains(space, warmup, length=gcd(warmup, kept), mode=mode)
        keys = jax.random.split(jax.random.key(seed), CHAINS)
        state = chains.begin(keys, as_arrays(model.initial, float), data)
        for _ in range(warmup // chains.length):
            state, _, _ = chains.advance(state, data)
        rounds: list[Sampled] = []
        while not rounds or (len(rounds) < MOST_ROUNDS and not enough(_joined(rounds).sites)):
            parts = []
            for _ in range(kept // chains.length):
                state, sites, diverging = chains.advance(state, data)
                parts.append(Sampled(_arrays(sites), np.asarray(diverging)))
            rounds.append(_joined(parts))
    # Every model is compiled anew; what is compiled would stay in memory.
    jax.clear_caches()
    return _joined(rounds)


def _mode(model: Model, space: Space, data: Arrays) -> Mode | None:
    """The posterior's mode, None where it is none that a Gaussian could follow."""
    start = jax.jit(space.start)(as_arrays(model.initial, float), data)
    mode = find_mode(space, np.asarray(start), data)
    return None if mode.reasons else mode


class Chains:
    """NUTS on one model as two compiled programs for all chains: side by side, or in threads for wide models.

    begin: (keys, initial values, data) -> state. advance: (state, data) -> (state, sites and diverging of
    `length` draws for each chain). Warm-up and kept draws are the same program: it is compiled once, and,
    as the data are its arguments, again only for another study. mode: of these data, where it is known.
    """

    def __init__(
        self, space: Space, warmup: int, length: int, tree_depth: int = 10, mode: Mode | None = None
    ) -> None:
        self._mode = mode
        self.length = length
        self._tree_depth = tree_depth
        self._space = space
        self._warmup = warmup
        self._init, self._step = hmc(potential_fn_gen=self._potential, algo="NUTS")
        self._wide = space.dimension > MOST_DENSE
        if self._wide:
            self.begin, self.advance = in_threads(self._begin), in_threads(self._advance)
        else:
            self.begin = jax.jit(jax.vmap(self._begin, in_axes=(0, None, None)))
            self.advance = jax.jit(jax.vmap(self._advance, in_axes=(0, None)))

    def _potential(self, data: Arrays) -> Callable[[Array], Array]:
        return lambda vector: self._space.potential(vector, data)

    def _begin(self, key: Array, initial: Arrays, data: Arrays) -> HMCState:
        nearby, key = jax.random.split(key)
        known = self._mode is not None
        place = self._about_mode(nearby) if known else self._about_start(nearby, initial, data)
        return self._init(
            place,
            self._warmup,
            dense_mass=known or not self._wide,
            inverse_mass_matrix=self._metric,
            adapt_mass_matrix=not known,
            target_accept_prob=ACCEPTANCE_ABOUT_MODE if known else TARGET_ACCEPTANCE,
            max_tree_depth=self._tree_depth,
            model_kwargs={"data": data},
            rng_key=key,
        )

    # Chains that start at one point could not show that there are two modes.
    def _about_start(self, key: Array, initial: Arrays, data: Arrays) -> Array:
        middle = self._space.start(initial, data)
        return middle + jax.random.uniform(key, middle.shape, minval=-NEARBY, maxval=NEARBY)

    def _about_mode(self, key: Array) -> Array:
        assert self._mode is not None
        white = jax.random.normal(key, self._mode.at.shape)
        factor = jnp.asarray(self._mode.factor)
        return jnp.asarray(self._mode.at) + AROUND * solve_triangular(factor, white, lower=True, trans="T")

    @property
    def _metric(self) -> Array | None:
        if self._mode is None:
            return None
        return cho_solve((self._mode.factor, True), jnp.eye(len(self._mode.at)))

    def _advance(self, state: HMCState, data: Arrays) -> tuple[HMCState, dict[str, Array], Array]:
        state, vectors, diverging = self._scan(state, data, self.length)
        return state, jax.vmap(self._space.sites, in_axes=(0, None))(vectors, data), diverging

    def whole(self, key: Array, initial: Arrays, data: Arrays) -> dict[str, Array]:
        """Sites (length, …) of one chain after its warm-up: a pure function, for many data sets at once."""
        state = self._begin(key, initial, data)
        _, vectors, _ = self._scan(state, data, self._warmup + self.length)
        return jax.vmap(self._space.sites, in_axes=(0, None))(vectors[self._warmup :], data)

    def _scan(self, state: HMCState, data: Arrays, length: int) -> tuple[HMCState, Array, Array]:
        """`length` transitions of one chain: new state, vectors (length, dimension), diverging (length,)."""

        def step(state: HMCState, _: None) -> tuple[HMCState, tuple[Array, Array]]:
            state = self._step(state, model_kwargs={"data": data})
            return state, (state.z, state.diverging)

        state, (vectors, diverging) = jax.lax.scan(step, state, length=length)
        return state, vectors, diverging


def in_threads(one: Callable[..., Any]) -> Callable[..., Any]:
    """`one` compiled, for each part along its first argument's first axis, on all processors."""
    compiled: list[Any] = []

    def call(part: Any, *shared: Any) -> Any:
        # Precision is a setting of each thread.
        with jax.enable_x64(True):
            return jax.block_until_ready(compiled[0](part, *shared))

    def run(first: Any, *shared: Any) -> Any:
        count = len(jax.tree.leaves(first)[0])
        parts = [jax.tree.map(lambda leaf, i=i: leaf[i], first) for i in range(count)]
        if not compiled:
            compiled.append(jax.jit(one).lower(parts[0], *shared).compile())
        with ThreadPoolExecutor(min(count, os.cpu_count() or 1)) as pool:
            results = list(pool.map(lambda part: call(part, *shared), parts))
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)

    return run


def _joined(rounds: list[Sampled]) -> Sampled:
    sites = {name: np.concatenate([part.sites[name] for part in rounds], axis=1) for name in rounds[0].sites}
    return Sampled(sites, np.concatenate([part.diverging for part in rounds], axis=1))


def sample_prior(model: Model, seed: int, draws: int = PRIOR_DRAWS) -> Draws:
    """Independent draws of a model's parameters before any data: {site: (draws, …)}."""
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(seed), draws)
        program = jax.jit(jax.vmap(lambda key, data: prior_sites(model, key, data), in_axes=(0, None)))
        return _arrays(program(keys, as_arrays(model.data)))


def prior_sites(model: Model, key: Array, data: Arrays) -> dict[str, Array]:
    """One draw of every site from the prior."""
    trace: dict[str, Any] = handlers.trace(handlers.seed(model.program, key)).get_trace(**data)
    return {
        name: site["value"]
        for name, site in trace.items()
        if site["type"] == "sample" and not site["is_observed"]
    }


def _arrays(sites: Mapping[str, Array]) -> Draws:
    return {name: np.asarray(value, dtype=np.float64) for name, value in sites.items()}
