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
from inference.models.base import Draws, Fit, Model
from inference.results.predictive import Predictive, mean_without_law, p_value, tells_two_groups
from inference.sampling.space import Arrays, as_arrays

# The number of simulated summaries.
SIMULATED = 60
# Neighbouring entries of a summary are added up to so many groups.
MOST_GROUPS = 24


def predict(model: Model, fit: Fit) -> Predictive | None:
    """Simulate summaries from the likelihood at draws of prior and posterior; None without reports."""
    summaries, random = model.summaries, np.random.default_rng(fit.seed)
    replicates, drawn = summaries.replicates, (some_draws(fit.prior_sites, 1), some_draws(fit.sites, 2))
    # Models of raw answers have no reports.
    n = replicates.n if replicates is not None else int(np.asarray(model.data.get("n", 0)))
    if n == 0:
        return None
    # 1. A model may simulate sums of reports itself.
    if replicates is not None:
        before, after = (
            np.stack(
                [
                    replicates.draw({name: values[place] for name, values in sites.items()}, random)
                    for place in range(SIMULATED)
                ]
            )
            for sites in drawn
        )
        return Predictive(groups_of(before, n), groups_of(after, n), groups_of(replicates.observed, n))
    # 2. Otherwise its program has the law of the summary.
    with jax.enable_x64(True):
        data = as_arrays(model.data)
        each = jax.vmap(partial(_law, model), (0, 0, None))
        program = Program(
            lambda key, sites, data: each(jax.random.split(key, SIMULATED), sites, data), runs_once=True
        )
        laws = [program(raw_key(fit.seed), as_arrays(sites), data) for sites in drawn]
    before, after = (_simulated(law, n, random) for law in laws)
    observed = np.asarray(laws[0]["observed"], dtype=np.float64)[0].ravel()
    before, after, shown = (groups_of(summaries.shown(values), n) for values in (before, after, observed))
    check = Predictive(before, after, shown)
    if summaries.channel is None:
        return check
    # 3. A whole histogram is tested too.
    channel, cells = summaries.channel(), np.asarray(laws[1]["cells"], dtype=np.float64)
    cells = cells[np.isfinite(cells).all(axis=1)]
    count = sum(int(np.prod(values.shape[2:])) for values in fit.sites.values())
    return replace(
        check,
        fit_p=p_value(observed, cells, channel, count),
        tells_laws=tells_two_groups(float(observed.sum()), cells, channel, count),
        mean=mean_without_law(observed, cells, channel, count),
        bounds=summaries.bounds,
    )


def some_draws(sites: Draws, axes: int) -> dict[str, NDArray[np.float64]]:
    """Return evenly spaced finite draws, {site: (SIMULATED, …)}. axes: how many leading axes count draws."""
    flat = {name: np.asarray(values).reshape(-1, *values.shape[axes:]) for name, values in sites.items()}
    finite = [np.isfinite(values).reshape(len(values), -1).all(axis=1) for values in flat.values()]
    usable = np.flatnonzero(np.all(finite, axis=0))
    places = usable[np.linspace(0, len(usable) - 1, SIMULATED).astype(int)]
    return {name: values[places] for name, values in flat.items()}


def _law(model: Model, key: Array, sites: Arrays, data: Arrays) -> dict[str, Array]:
    """Return the observed summary, with its cells' probabilities if it counts reports, else with a sample."""
    placed = handlers.substitute(handlers.seed(model.program, key), dict(sites))
    site = handlers.trace(placed).get_trace(**data)["reports"]
    law = site["fn"]
    if isinstance(law, HolderLaw):
        return {"observed": law.observed_total, "sample": law.draw_total(key)}
    # NumPy draws counts without a program to compile.
    if isinstance(law, CellCounts):
        return {"observed": site["value"], "cells": law.cell_probs}
    return {"observed": site["value"], "sample": law.sample(key)}


def _simulated(law: dict[str, Array], n: int, random: Generator) -> NDArray[np.float64]:
    """Return simulated summaries (simulated, size)."""
    if "sample" in law:
        return np.asarray(law["sample"], dtype=np.float64).reshape(SIMULATED, -1)
    cells = np.asarray(law["cells"], dtype=np.float64)
    return np.stack([random.multinomial(n, row / row.sum()) for row in cells]).astype(np.float64)


def groups_of(values: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Entries (…, size) of summaries for each report, neighbours added up: (…, groups)."""
    parts = np.array_split(values, min(MOST_GROUPS, values.shape[-1]), axis=-1)
    return np.stack([part.sum(axis=-1) for part in parts], axis=-1) / n
