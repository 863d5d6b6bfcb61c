"""Drawing from a model with NUTS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from numpyro.distributions import biject_to
from numpyro.infer import MCMC, NUTS, Predictive, init_to_uniform

from inference.models.base import Draws, Model

CHAINS = 4
WARMUP = 1000
KEPT = 1000
MOST_ROUNDS = 4
TARGET_ACCEPTANCE = 0.9
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
    """
    with jax.enable_x64(True):
        mcmc = _chains(model, warmup, kept)
        mcmc.run(jax.random.key(seed), **model.data)
        rounds = [_last_round(mcmc)]
        while len(rounds) < MOST_ROUNDS and not enough(_joined(rounds).sites):
            mcmc.post_warmup_state = mcmc.last_state
            mcmc.run(mcmc.last_state.rng_key, **model.data)
            rounds.append(_last_round(mcmc))
    # Every model is compiled anew; what is compiled would stay in memory.
    jax.clear_caches()
    return _joined(rounds)


def _chains(model: Model, warmup: int, kept: int) -> MCMC:
    kernel = NUTS(
        model.program,
        init_strategy=partial(_start_nearby, dict(model.initial)),
        target_accept_prob=TARGET_ACCEPTANCE,
        dense_mass=True,
    )
    return MCMC(
        kernel,
        num_warmup=warmup,
        num_samples=kept,
        num_chains=CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )


def _start_nearby(values: dict[str, object], site: dict[str, Any] | None = None) -> Any:
    """NumPyro's init strategy: each chain starts near the moment estimate, in unbounded space.

    Chains that start at one point could not show that there are two modes.
    """
    if site is None:
        return partial(_start_nearby, values)
    if site["type"] != "sample" or site["is_observed"] or site["name"] not in values:
        return init_to_uniform(site)
    unbounded = biject_to(site["fn"].support)
    middle = unbounded.inv(jnp.asarray(values[site["name"]], dtype=float))
    shift = jax.random.uniform(site["kwargs"]["rng_key"], middle.shape, minval=-NEARBY, maxval=NEARBY)
    return unbounded(middle + shift)


def _last_round(mcmc: MCMC) -> Sampled:
    diverging = mcmc.get_extra_fields(group_by_chain=True)["diverging"]
    return Sampled(_arrays(mcmc.get_samples(group_by_chain=True)), np.asarray(diverging))


def _joined(rounds: list[Sampled]) -> Sampled:
    sites = {name: np.concatenate([part.sites[name] for part in rounds], axis=1) for name in rounds[0].sites}
    return Sampled(sites, np.concatenate([part.diverging for part in rounds], axis=1))


def sample_prior(model: Model, seed: int) -> Draws:
    """Independent draws of a model's parameters before any data: {site: (draws, …)}."""
    with jax.enable_x64(True):
        draws = Predictive(model.program, num_samples=PRIOR_DRAWS)(jax.random.key(seed), **model.data)
        return _arrays({name: value for name, value in draws.items() if name != "reports"})


def _arrays(sites: Mapping[str, jax.Array]) -> Draws:
    return {name: np.asarray(value, dtype=np.float64) for name, value in sites.items()}
