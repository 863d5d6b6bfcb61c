"""Predictive checks: the summaries that the prior and the posterior expect, next to the observed summary."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import jax
import numpy as np
from jax import Array
from numpy.random import Generator
from numpy.typing import NDArray
from numpyro import handlers

from inference.compiling import Program, raw_key
from inference.likelihoods.common import CellCounts
from inference.likelihoods.holders.law import HolderLaw
from inference.models.base import Draws, Fit, Model, Replicates
from inference.results.predictive import Predictive, mean_without_law, p_value, tells_two_groups
from inference.sampling.space import Arrays, as_arrays

SIMULATED = 60
# Neighbouring entries of a summary are added up to so many groups.
MOST_GROUPS = 24


def predict(model: Model, fit: Fit) -> Predictive | None:
    """Simulate summaries from the likelihood at draws of prior and posterior; None without reports."""
    prior, seed = fit.prior_sites, fit.seed
    flat = {name: values.reshape(-1, *values.shape[2:]) for name, values in fit.sites.items()}
    if model.summaries.replicates is not None:
        return _replicated(model.summaries.replicates, prior, flat, np.random.default_rng(seed))
    # Models of raw answers have no reports.
    n = int(np.asarray(model.data.get("n", 0)))
    if n == 0:
        return None
    with jax.enable_x64(True):
        data = as_arrays(model.data)
        each = jax.vmap(partial(_expected, model), (0, 0, None))
        program = Program(
            lambda key, sites, data: each(jax.random.split(key, SIMULATED), sites, data), runs_once=True
        )
        found = [program(raw_key(seed), _some(sites), data) for sites in (prior, flat)]
    random = np.random.default_rng(seed)
    before, after = (_simulated(expected, n, random) for expected in found)
    observed = np.asarray(found[0]["observed"], dtype=np.float64)[0].ravel()
    shown, channel = model.summaries.shown, model.summaries.channel
    groups = _grouped(shown(before), shown(after), shown(observed), n)
    return groups if channel is None else _tested(groups, channel(), model.summaries.bounds, found[1], flat)


def _tested(
    groups: Predictive,
    channel: NDArray[np.float64],
    bounds: tuple[float, float],
    expected: dict[str, Array],
    flat: Draws,
) -> Predictive:
    """Return the check with the test of the whole histogram."""
    observed = np.asarray(expected["observed"], dtype=np.float64)[0]
    cells = np.asarray(expected["cells"], dtype=np.float64)
    cells = cells[np.isfinite(cells).all(axis=1)]
    count = sum(int(np.prod(values.shape[1:])) for values in flat.values())
    return replace(
        groups,
        fit_p=p_value(observed, cells, channel, count),
        tells_laws=tells_two_groups(float(observed.sum()), cells, channel, count),
        mean=mean_without_law(observed, cells, channel, count),
        bounds=bounds,
    )


def _replicated(
    replicates: Replicates, prior: Draws, posterior: Draws, random: Generator
) -> Predictive | None:
    """Return the check from sums that the model draws itself."""
    n = replicates.n
    if n == 0:
        return None
    before, after = (
        np.stack([replicates.draw(one, random) for one in _one_by_one(sites)]) for sites in (prior, posterior)
    )
    return _grouped(before, after, replicates.observed, n)


def _one_by_one(sites: Draws) -> list[Draws]:
    return [{name: np.asarray(values[i]) for name, values in sites.items()} for i in _places(sites)]


def _some(sites: Draws) -> Arrays:
    """Some draws, evenly taken."""
    index = _places(sites)
    return as_arrays({name: values[index] for name, values in sites.items()})


def _places(sites: Draws) -> NDArray[np.int_]:
    return np.linspace(0, len(next(iter(sites.values()))) - 1, SIMULATED).astype(int)


def _expected(model: Model, key: Array, sites: Arrays, data: Arrays) -> dict[str, Array]:
    """Return the likelihood's inputs, with its cells' probabilities if it counts reports, else a sample."""
    placed = handlers.substitute(handlers.seed(model.program, key), dict(sites))
    site = handlers.trace(placed).get_trace(**data)["reports"]
    law, found = site["fn"], {"observed": site["value"]}
    if isinstance(law, HolderLaw):
        return {"observed": law.observed_total, "sample": law.draw_total(key)}
    # NumPy draws counts without a program to compile.
    if isinstance(law, CellCounts):
        return {**found, "cells": law.cell_probs}
    return {**found, "sample": law.sample(key)}


def _simulated(expected: dict[str, Array], n: int, random: Generator) -> NDArray[np.float64]:
    """Simulated summaries (simulated, size)."""
    if "sample" in expected:
        return np.asarray(expected["sample"], dtype=np.float64).reshape(SIMULATED, -1)
    cells = np.asarray(expected["cells"], dtype=np.float64)
    return np.stack([random.multinomial(n, row / row.sum()) for row in cells]).astype(np.float64)


def _grouped(
    before: NDArray[np.float64], after: NDArray[np.float64], observed: NDArray[np.float64], n: int
) -> Predictive:
    return Predictive(groups_of(before, n), groups_of(after, n), groups_of(observed, n))


def groups_of(values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Entries (…, size) of summaries for each report, neighbours added up: (…, groups)."""
    parts = np.array_split(values, min(MOST_GROUPS, values.shape[-1]), axis=-1)
    return np.stack([part.sum(axis=-1) for part in parts], axis=-1) / n
