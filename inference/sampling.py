"""Drawing from a model with NUTS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import jax
import numpy as np
from numpy.typing import NDArray
from numpyro.infer import MCMC, NUTS, Predictive, init_to_value

from inference.models.base import Draws, Model

CHAINS = 4
WARMUP = 1000
KEPT = 1000
TARGET_ACCEPTANCE = 0.9
PRIOR_DRAWS = 1000


@dataclass(frozen=True)
class Sampled:
    """sites: {site: draws (chains, draws, …)}; diverging: (chains, draws)."""

    sites: Draws
    diverging: NDArray[np.bool_]


def sample(model: Model, seed: int, warmup: int = WARMUP, kept: int = KEPT) -> Sampled:
    """Four vectorised NUTS chains in float64; the same seed on the same machine gives the same draws."""
    with jax.enable_x64(True):
        kernel = NUTS(
            model.program,
            init_strategy=init_to_value(values=dict(model.initial)),
            target_accept_prob=TARGET_ACCEPTANCE,
            dense_mass=True,
        )
        mcmc = MCMC(
            kernel,
            num_warmup=warmup,
            num_samples=kept,
            num_chains=CHAINS,
            chain_method="vectorized",
            progress_bar=False,
        )
        mcmc.run(jax.random.key(seed), **model.data)
        sites = _arrays(mcmc.get_samples(group_by_chain=True))
        diverging = np.asarray(mcmc.get_extra_fields(group_by_chain=True)["diverging"])
    # Every model is compiled anew; what is compiled would stay in memory.
    jax.clear_caches()
    return Sampled(sites, diverging)


def sample_prior(model: Model, seed: int) -> Draws:
    """Independent draws of a model's parameters before any data: {site: (draws, …)}."""
    with jax.enable_x64(True):
        draws = Predictive(model.program, num_samples=PRIOR_DRAWS)(jax.random.key(seed), **model.data)
        return _arrays({name: value for name, value in draws.items() if name != "reports"})


def _arrays(sites: Mapping[str, jax.Array]) -> Draws:
    return {name: np.asarray(value, dtype=np.float64) for name, value in sites.items()}
