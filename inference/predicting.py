"""Predictive checks: what summaries the prior and the posterior expect, beside the one that came."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from numpyro import handlers

from inference.models.base import Draws, Model
from inference.results.predictive import Predictive
from inference.space import Arrays, as_arrays

SIMULATED = 60
# Neighbouring entries of a summary are added up to so many groups.
MOST_GROUPS = 24


def predict(model: Model, prior: Draws, posterior: Draws, seed: int) -> Predictive | None:
    """Summaries simulated from the likelihood at draws of prior and posterior; None without reports.

    prior: {site: (draws, …)}; posterior: {site: (chains, draws, …)}.
    """
    n = int(np.asarray(model.data.get("n", 0)))
    if n == 0:
        return None
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in posterior.items()}
    with jax.enable_x64(True):
        data = as_arrays(model.data)
        program = jax.jit(jax.vmap(partial(_simulated, model), (0, 0, None)))
        keys = jax.random.split(jax.random.key(seed), SIMULATED)
        drawn = [np.asarray(program(keys, _some(sites), data)) for sites in (prior, flat)]
        observed = np.asarray(_observed(model, data))
    prior_reports, reports = (values.reshape(SIMULATED, -1) for values in drawn)
    return Predictive(*(_groups(values, n) for values in (prior_reports, reports, observed.ravel())))


def _some(sites: Draws) -> Arrays:
    """Some draws, evenly taken."""
    count = len(next(iter(sites.values())))
    index = np.linspace(0, count - 1, SIMULATED).astype(int)
    return {name: jnp.asarray(values[index]) for name, values in sites.items()}


def _simulated(model: Model, key: Array, sites: Arrays, data: Arrays) -> Array:
    placed = handlers.substitute(handlers.seed(model.program, key), dict(sites))
    law = handlers.trace(placed).get_trace(**data)["reports"]["fn"]
    return jnp.asarray(law.sample(key), dtype=float)


def _observed(model: Model, data: Arrays) -> Array:
    """What the likelihood sees of the data."""
    start = handlers.seed(model.program, jax.random.key(0))
    return jnp.asarray(handlers.trace(start).get_trace(**data)["reports"]["value"], dtype=float)


def _groups(values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Entries (…, size) of summaries for each report, neighbours added up: (…, groups)."""
    parts = np.array_split(values, min(MOST_GROUPS, values.shape[-1]), axis=-1)
    return np.stack([part.sum(axis=-1) for part in parts], axis=-1) / n
