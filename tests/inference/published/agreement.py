"""Posterior means of many data sets at once, and by how many standard errors they differ from others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from numpyro.diagnostics import effective_sample_size

from inference.published.base import Kernel, Run, one_chain
from tests.inference.published.dpblr_cases import expected

ERRORS = 4.0
Moments = dict[str, tuple[float, float]]


def posteriors(kernel: Kernel, data: Sequence[Any], run: Run) -> list[Moments]:
    """{parameter: mean and its Monte Carlo standard error} of each data set, all in one program."""
    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf, float) for leaf in leaves]), *data)
        keys = jax.random.split(jax.random.key(run.seed), (len(data), run.chains))
        chains = jax.vmap(lambda key, one: one_chain(kernel, key, one, run), in_axes=(0, None))
        sites = jax.jit(jax.vmap(chains))(keys, stacked)
        theta, variance = np.asarray(sites["theta"]), np.asarray(sites["variance"])
    drawn = {"constant": theta[..., 0], "slope": theta[..., 1], "variance": variance}
    return [{name: mean_and_error(draws[i]) for name, draws in drawn.items()} for i in range(len(data))]


def mean_and_error(draws: np.ndarray) -> tuple[float, float]:
    """Of draws (chains, kept); chains that disagree count too."""
    between = draws.mean(axis=1).std(ddof=1) / np.sqrt(len(draws))
    within = draws.std() / np.sqrt(float(effective_sample_size(draws)))
    return float(draws.mean()), float(max(between, within))


def away(found: Moments, case: dict[str, Any], method: str) -> dict[str, float]:
    """By how many combined standard errors each parameter's mean differs."""
    return {
        name: abs(found[name][0] - e.mean) / np.hypot(found[name][1], e.error)
        for name, e in expected(case, method).items()
    }
