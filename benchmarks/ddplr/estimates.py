"""Draws of θ by every method from many noisy releases of one table: one compiled program for each shape."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from benchmarks.ddplr.constants import NoiseOf, cross_noise, squares_noise, svec_noise
from benchmarks.ddplr.ours import default_draws
from benchmarks.ddplr.releases import Setting, releases
from benchmarks.ddplr.ridges import ridge_points
from benchmarks.papers import mcmc_bs
from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published import mcmc_fixeds, mcmc_normalx
from inference.published.base import Kernel, Run, one_chain
from inference.published.conjugate import ConjugatePrior
from inference.published.mcmc_fixeds import Released, released

Matrix = NDArray[np.float64]
KERNELS: dict[str, tuple[Kernel, NoiseOf]] = {
    "mcmc_normalx": (mcmc_normalx.KERNEL, cross_noise),
    "mcmc_fixeds": (mcmc_fixeds.KERNEL, cross_noise),
    "mcmc_bs": (mcmc_bs.KERNEL, squares_noise),
}
PUBLISHED = ("mcmc_normalx", "mcmc_fixeds", "bayes_fixeds_fast", "mcmc_bs", "ada_ssp")
# marginal on the statistics of DDPLR's methods and on its own mechanism's; its own priors do not know theirs.
OURS: dict[str, NoiseOf] = {"marginal, S z": cross_noise, "marginal": svec_noise}
METHODS = (*PUBLISHED, *OURS)


def draws_of(method: str, setting: Setting) -> Matrix:
    """θ: (runs, draws, d)."""
    if method in KERNELS:
        kernel, noise_of = KERNELS[method]
        return chains(kernel, releases(setting, noise_of), setting)
    if method in OURS:
        return default_draws(releases(setting, OURS[method]), setting.table.bounds, setting.nuts)
    if method == "ada_ssp":
        return np.stack([point[None] for point in ridge_points(setting)])
    third = setting.table.bounds.y / 3
    variance = third if setting.constants == "published" else third**2
    random = np.random.default_rng(setting.seed)
    found = [
        mcmc_fixeds.fast_posterior(one, setting.prior, variance) for one in releases(setting, cross_noise)
    ]
    return np.stack([random.multivariate_normal(*each, 2000) for each in found])


def chains(kernel: Kernel, every: list[HolderStatistics], setting: Setting) -> Matrix:
    """One chain of the published length each, its first half thrown away: (runs, draws, d)."""
    half = setting.iterations // 2
    thin = max(1, half // 1000)
    run = Run(setting.seed, half, half // thin, 1, thin)
    data = released(every[0], setting.prior, half)
    data = data._replace(sums=np.stack([one.sums for one in every]))
    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(setting.seed), len(every))
        return np.asarray(_program(kernel, run)(keys, jax.tree.map(np.asarray, data)))


@lru_cache(maxsize=8)
def _program(kernel: Kernel, run: Run) -> Callable[..., Any]:
    each = Released(0, *[None] * 4, ConjugatePrior(*[None] * 8))  # type: ignore[arg-type]
    return jax.jit(jax.vmap(lambda key, data: one_chain(kernel, key, data, run)["theta"], (0, each)))


def split_r_hat(draws: Matrix) -> Matrix:
    """Of each run's one chain, its worst coordinate: (runs,)."""
    halves = np.stack(np.split(draws[:, : draws.shape[1] // 2 * 2], 2, axis=1), 1)
    length = halves.shape[2]
    within = halves.var(2, ddof=1).mean(1)
    between = length * halves.mean(2).var(1, ddof=1)
    return np.sqrt(((length - 1) / length * within + between / length) / within).max(-1)
