"""What a method states: its source, what it is not for, and how it draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

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

    draw: draws in scaled units: sites "theta" (chains, draws, q) and "variance" (chains, draws).
    prior: the form in which it takes the prior of both.
    """

    name: str
    source: str
    refuses: Callable[[HolderStatistics], str]
    draw: Callable[[HolderStatistics, ConjugatePrior, Run], Sampled]
    prior: PriorForm
