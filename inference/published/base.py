"""The interface of a method: which statistics it takes, how it draws, and how its kernel's chains run.

Chains run side by side as one compiled program. The kernel of a posterior in closed form has steps that are
independent draws.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from inference.likelihoods.holders import HolderStatistics
from inference.published.conjugate import ConjugatePrior
from inference.samplers import CHAINS, KEPT
from inference.sampling.nuts import Sampled

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


# A reason against a method for these statistics, or "".
Check = Callable[[HolderStatistics], str]


@dataclass(frozen=True)
class Method:
    """One method. checks: of the statistics that it takes.

    draw: draws in scaled units: sites "theta" (chains, draws, q) and "variance" (chains, draws). in_sds: the
    prior covariance of θ is multiplied by σ². fixed_variance: σ² of a method that does not infer it.
    """

    name: str
    checks: tuple[Check, ...]
    draw: Callable[[HolderStatistics, ConjugatePrior, Run], Sampled]
    in_sds: bool = False
    fixed_variance: float | None = None

    def refuses(self, statistics: HolderStatistics) -> str:
        """Return the first reason why the method is not for these statistics, or ""."""
        return next(filter(None, (check(statistics) for check in self.checks)), "")


Sites = dict[str, Array]


def run_kernel(kernel: Kernel, data: Any, run: Run) -> Sampled:
    """Draws of all chains: {site: (chains, kept, …)}. Data of the same shapes are not compiled again."""
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(run.seed), run.chains)
        length = run._replace(seed=0)
        floats = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), data)
        sites = jax.block_until_ready(_program(kernel, length)(keys, floats))
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


def gaussian(statistics: HolderStatistics) -> str:
    """Require Gaussian noise."""
    return "" if statistics.law == "gaussian" else f"needs Gaussian noise, not {statistics.law} noise"


def public_counts(statistics: HolderStatistics) -> str:
    """Require numbers of records without noise."""
    return "needs numbers of records without noise (no count_share)" if statistics.count_sd else ""


def noisy_moments(statistics: HolderStatistics) -> str:
    """Require all of XᵀX and Xᵀy, with noise; the number of records in XᵀX may have none."""
    noise = statistics.noise[:, :-1].copy()
    if statistics.intercept:
        noise[0, 0] = 1.0
    if not np.all(np.isfinite(noise)):
        return "needs all of XᵀX and Xᵀy"
    return "" if np.all(noise > 0) else "needs statistics with noise"


def unaveraged(statistics: HolderStatistics) -> str:
    """Require rows that are records."""
    return "is for records, not for averages of records (average)" if statistics.average > 1 else ""
