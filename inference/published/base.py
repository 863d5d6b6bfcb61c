"""The interface of a method: its source, its limits, how it draws; and how its kernel's chains run.

Chains run side by side as one compiled program. The kernel of a posterior in closed form has steps that are
independent draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published.conjugate import ConjugatePrior
from inference.published.prior_forms import PriorForm
from inference.sampling import CHAINS, KEPT, Sampled

WARMUP = 1000


class Kernel(NamedTuple):
    """A Markov chain as pure functions of one chain's state; `data` is a pytree of arrays.

    init: (key, data) -> state. step: (key, state, data) -> state. sites: (state) -> {site: value}; "theta"
    (q,), the constant's coefficient first where there is one, and "variance" () are among them.
    """

    init: Callable[[Array, Any], Any]
    step: Callable[[Array, Any, Any], Any]
    sites: Callable[[Any], dict[str, Array]]


class Run(NamedTuple):
    """seed: of all chains. warmup: steps thrown away. kept: draws of each chain, `thin` steps apart."""

    seed: int
    warmup: int = WARMUP
    kept: int = KEPT
    chains: int = CHAINS
    thin: int = 1


@dataclass(frozen=True)
class Method:
    """One method. source: paper and section. refuses: why it is not for these statistics, or "".

    draw: draws in scaled units: sites "theta" (chains, draws, q) and "variance" (chains, draws). prior: the
    form in which it takes the prior of both.
    """

    name: str
    source: str
    refuses: Callable[[HolderStatistics], str]
    draw: Callable[[HolderStatistics, ConjugatePrior, Run], Sampled]
    prior: PriorForm


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

    # Warm-up extends the way to the first draw: so a step is compiled only once.
    steps = jnp.full(run.kept, run.thin).at[0].add(run.warmup)
    _, sites = jax.lax.scan(advance, (kernel.init(beginning, data), jnp.zeros((), int)), steps)
    return sites


def _as_floats(data: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), data)
