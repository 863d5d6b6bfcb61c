"""NUTS in whitened coordinates: the transitions of many chains as one compiled program.

Positions are vectors of a model's unbounded space; momenta are white, and a step moves the position by
factor × momentum, which is Hamiltonian Monte Carlo with the mass matrix (factor factorᵀ)⁻¹. As nothing but
the step size adapts inside the program, it is small, and no chain waits for another's decompositions.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from numpy.typing import NDArray
from numpyro.infer.hmc_util import IntegratorState, build_tree, dual_averaging

from inference.compiling import Program, compiled
from inference.models.base import TARGET_ACCEPTANCE
from inference.sampling.space import Arrays, Space
from inference.sampling.whitening import Shape, Slope, finite

# The target for chains whose first steps were too long for a part of their posterior.
CAREFUL_ACCEPTANCE = 0.99
TREE_DEPTH = 10
# How far from the centre chains start, in each white coordinate.
SPREAD = 2.0
FIRST_STEP = 0.5

Values = NDArray[np.float64]
_start_step, _next_step = dual_averaging()


def has_processors() -> bool:
    """Return True if each chain can have a processor: side by side, all wait for the longest trajectory.

    An accelerator has one queue of programs, and its chains run side by side.
    """
    return jax.default_backend() == "cpu"


class State(NamedTuple):
    """One chain: its position, its potential and whitened gradient there, and how its steps adapt."""

    vector: Any
    potential: Any
    gradient: Any
    key: Any
    log_step: Any
    averaging: tuple[Any, ...]


class Moved(NamedTuple):
    """The transitions of one chain.

    vectors: (length, d). diverging, potentials, energies: (length,).
    """

    vectors: Any
    diverging: Any
    potentials: Any
    energies: Any


class Chains:
    """The chains of one model's data, or with `separate` one chain for each of many data sets.

    length: transitions of one call of the program; told: is called after each call with their number. slope:
    compiled (vector, data) -> (potential, gradient).
    """

    def __init__(
        self,
        space: Space,
        length: int,
        *,
        separate: bool = False,
        tree_depth: int = TREE_DEPTH,
        told: Callable[[int], None] = lambda _transitions: None,
    ) -> None:
        self.space, self.length, self._told = space, length, told
        self._tree_depth, self._separate = tree_depth, separate
        self._slope = jax.jit(jax.value_and_grad(space.potential))
        self.slope = compiled(self._slope)
        self._alone = not separate and has_processors()
        own = 0 if separate else None
        beside = jax.vmap(self._advance_one, in_axes=(0, own, own, None, None))
        self._program = Program(self._advance_one if self._alone else beside)

    def prepare(self, chains: int, factor: Values, data: Arrays) -> None:
        """Begin to compile the program for so many chains, and a factor and data of these shapes."""
        zero = np.zeros((chains, self.space.dimension))
        state = _first_state(zero, zero[:, 0], zero, np.zeros((chains, 2), np.uint32))
        state = parts_of(state)[0] if self._alone else state
        self._program.prepare(state, factor, data, np.asarray(True), np.asarray(TARGET_ACCEPTANCE))

    def slope_at(self, data: Arrays) -> Slope:
        """The slope for searches in NumPy."""
        return finite(lambda vector: self.slope(vector, data))

    def begin(self, vectors: Values, keys: Array, factor: Values, data: Arrays) -> State:
        """Chains at vectors (chains, d) with raw keys (chains, 2), and a step size yet to be found."""
        datas, factors = [data] * len(vectors), [factor] * len(vectors)
        if self._separate:
            datas, factors = parts_of(data), list(factor)
        found = [self.slope(vector, one) for vector, one in zip(vectors, datas, strict=True)]
        potentials = np.asarray([float(potential) for potential, _ in found])
        white = [
            _whiten_gradient(np.asarray(slope), one) for (_, slope), one in zip(found, factors, strict=True)
        ]
        return _first_state(np.asarray(vectors), potentials, np.asarray(white), keys)

    def run(
        self,
        state: State,
        factor: Values,
        data: Arrays,
        count: int,
        adapt: bool = False,
        target: float = TARGET_ACCEPTANCE,
    ) -> tuple[State, Moved]:
        """`count` transitions of each chain, and what each did: (chains, count, …).

        count: a multiple of `length`. adapt: whether step sizes are still being found, for the acceptance
        `target`.
        """
        program = in_threads(self._program) if self._alone else self._program
        parts = []
        for _ in range(count // self.length):
            state, moved = program(state, factor, data, np.asarray(adapt), np.asarray(target))
            parts.append(jax.tree.map(np.asarray, moved))
            self._told(self.length)
        return state, Moved(*(np.concatenate(each, axis=1) for each in zip(*parts, strict=True)))

    def _advance_one(
        self, state: State, factor: Array, data: Arrays, adapt: Array, target: Array
    ) -> tuple[State, Moved]:
        """Return one chain after `length` transitions, and what each did."""

        def leapfrog(size: Array, _: Array, state: IntegratorState) -> IntegratorState:
            vector, momentum, _, gradient = state
            momentum = momentum - size / 2 * gradient
            vector = vector + size * (factor @ momentum if factor.ndim == 2 else factor * momentum)
            # Compiled on its own, so that loops inside loops trace it once.
            potential, slope = self._slope(vector, data)
            gradient = _whiten_gradient(slope, factor)
            return IntegratorState(vector, momentum - size / 2 * gradient, potential, gradient)

        def transition(state: State, _: None) -> tuple[State, Moved]:
            # 1. A jump from the prior.
            if self.space.redraw is not None:
                key, own_key = jax.random.split(state.key)
                vector = self.space.redraw(state.vector, own_key, data)
                potential, slope = self._slope(vector, data)
                gradient = _whiten_gradient(slope, factor)
                state = state._replace(vector=vector, potential=potential, gradient=gradient, key=key)
            # 2. A path along the gradients.
            key, momentum_key, tree_key = jax.random.split(state.key, 3)
            momentum = jax.random.normal(momentum_key, state.vector.shape)
            tree = build_tree(
                leapfrog,
                lambda _, momentum: momentum @ momentum / 2,
                IntegratorState(state.vector, momentum, state.potential, state.gradient),
                jnp.ones_like(momentum),
                jnp.exp(state.log_step),
                tree_key,
                max_tree_depth=self._tree_depth,
            )
            # 3. The next step size.
            short = target - tree.sum_accept_probs / tree.num_proposals
            adapted = _next_step(short, state.averaging)
            averaging = jax.tree.map(lambda new, old: jnp.where(adapt, new, old), adapted, state.averaging)
            log_step = jnp.where(adapt, adapted[0], state.log_step)
            place = (tree.z_proposal, tree.z_proposal_pe, tree.z_proposal_grad)
            did = (tree.diverging, tree.z_proposal_pe, tree.z_proposal_energy)
            return State(*place, key, log_step, averaging), Moved(tree.z_proposal, *did)

        return jax.lax.scan(transition, state, length=self.length)


def _first_state(vectors: Values, potentials: Values, gradients: Values, keys: ArrayLike) -> State:
    log_step = np.full(len(vectors), np.log(FIRST_STEP))
    averaging = [np.full(len(vectors), part) for part in _start_step(np.log(2 * FIRST_STEP))]
    return State(vectors, potentials, gradients, keys, log_step, tuple(averaging))


def frozen(state: State) -> State:
    """Return the same chains with the step sizes that adaptation averaged."""
    return state._replace(log_step=state.averaging[1])


def starts(slope: Slope, shape: Shape, random: np.random.Generator, chains: int) -> Values:
    """Vectors (chains, d) about the centre, wider than the posterior but nowhere lost."""
    # Chains that start at one point could not show that there are two modes.
    white = random.uniform(-SPREAD, SPREAD, (chains, len(shape.centre)))
    lost = slope(shape.centre)[0] + 10.0 * (10 + len(shape.centre))
    for one in white:
        for _ in range(20):
            if slope(shape.centre + shape.stretch(one))[0] < lost:
                break
            one /= 2
    return shape.centre + shape.stretch(white)


def _whiten_gradient(gradient: Any, factor: Any) -> Any:
    return gradient @ factor if factor.ndim == 2 else gradient * factor


def stacked(parts: Any) -> Any:
    """Equal trees of arrays as one, along a new first axis."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *parts)


def in_threads(one: Program) -> Callable[..., Any]:
    """Run `one` for each part along its first argument's first axis, on all processors.

    Parts run one after the other if the program must run alone.
    """

    def call(part: Any, *shared: Any) -> Any:
        # Precision is a setting of each thread.
        with jax.enable_x64(True):
            return jax.block_until_ready(one(part, *shared))

    def run(first: Any, *shared: Any) -> Any:
        parts = parts_of(first)
        one.prepare(parts[0], *shared)
        most = 1 if one.alone else os.cpu_count() or 1
        with ThreadPoolExecutor(min(len(parts), most)) as pool:
            return stacked(list(pool.map(lambda part: call(part, *shared), parts)))

    return run


def parts_of(whole: Any) -> list[Any]:
    """The trees of which `stacked` makes the whole."""
    whole = jax.tree.map(np.asarray, whole)
    count = len(jax.tree.leaves(whole)[0])
    return [jax.tree.map(lambda leaf, i=i: leaf[i], whole) for i in range(count)]
