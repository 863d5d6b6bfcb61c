"""Draws of θ by every method from many noisy releases of one table: one compiled program for each shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import log, sqrt
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.typing import NDArray

from benchmarks.ddplr.constants import Bounds, Constants, NoiseOf, cross_noise, published_sigma, right_sigma
from benchmarks.ddplr.constants import squares_noise, svec_noise
from benchmarks.ddplr.tables import Table
from benchmarks.ldpbi.many_fits import posteriors_of
from inference.methods import ada_ssp, bayes_fixeds_fast, mcmc_bs, mcmc_fixeds, mcmc_normalx
from inference.methods.base import Kernel, Run
from inference.methods.conjugate import ConjugatePrior
from inference.methods.driver import one_chain
from inference.methods.marginal import conjugate_model
from inference.methods.released import Released, released
from inference.methods.statistics import HolderStatistics, exact

Matrix = NDArray[np.float64]
KERNELS: dict[str, tuple[Kernel, NoiseOf]] = {
    "mcmc_normalx": (mcmc_normalx.KERNEL, cross_noise),
    "mcmc_fixeds": (mcmc_fixeds.KERNEL, cross_noise),
    "mcmc_bs": (mcmc_bs.KERNEL, squares_noise),
}
PUBLISHED = ("mcmc_normalx", "mcmc_fixeds", "bayes_fixeds_fast", "mcmc_bs", "ada_ssp")
# marginal on the statistics of DDPLR's methods and on its own mechanism's.
OURS: dict[str, NoiseOf] = {"marginal, S z": cross_noise, "marginal": svec_noise}
METHODS = (*PUBLISHED, *OURS)


class Setting(NamedTuple):
    """One cell: a table among holders, what each may spend, whose constants, and how long the chains are."""

    table: Table
    holders: int
    epsilon: float
    constants: Constants
    prior: ConjugatePrior
    runs: int
    iterations: int = 10_000
    nuts: tuple[int, int] = (300, 300)
    seed: int = 0

    @property
    def budget(self) -> tuple[float, float]:
        return self.epsilon, self.table.delta


def paper_prior(scatter: Matrix, unit: float = 1.0) -> ConjugatePrior:
    """Section 5.1's, with C as the released code has it, 38 I (the text says I / 38); unit: of θ, squared."""
    d = len(scatter)
    return ConjugatePrior(np.zeros(d), 38.0 * unit * np.eye(d), 20.0, 0.5, scatter, d + 1.0, np.zeros(d), 1.0)


def draws_of(method: str, setting: Setting) -> Matrix:
    """θ: (runs, draws, d)."""
    if method in KERNELS:
        kernel, noise_of = KERNELS[method]
        return chains(kernel, releases(setting, noise_of), setting)
    if method in OURS:
        every = releases(setting, OURS[method])
        models = [conjugate_model(one, setting.prior) for one in every]
        return np.stack([found["theta"] for found in posteriors_of(models, *setting.nuts)])
    if method == "ada_ssp":
        return np.stack([point[None] for point in ridge_points(setting)])
    third = setting.table.bounds.y / 3
    variance = third if setting.constants == "published" else third**2
    random = np.random.default_rng(setting.seed)
    found = [
        bayes_fixeds_fast.posterior(one, setting.prior, variance) for one in releases(setting, cross_noise)
    ]
    return np.stack([random.multivariate_normal(*each, 2000) for each in found])


def centre_of(method: str, draws: Matrix) -> Matrix:
    """Estimates of θ, (runs, d): posterior means."""
    return draws.mean(1)


def releases(setting: Setting, noise_of: NoiseOf) -> list[HolderStatistics]:
    """The same table released `runs` times."""
    table, bounds = setting.table, setting.table.bounds
    truth = exact(table.among(setting.holders))
    noise = noise_of(bounds, truth.features, setting.budget, setting.constants)
    random = np.random.default_rng([setting.seed, setting.holders])
    found = []
    for _ in range(setting.runs):
        errors = np.triu(random.normal(size=truth.sums.shape)) * np.where(np.isfinite(noise), noise, 0)
        errors += np.triu(errors, 1).transpose(0, 2, 1)
        hidden = np.where(np.isfinite(noise), 1.0, 0.0)
        found.append(replace(truth, sums=truth.sums * hidden + errors, noise=noise))
    return found


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


def ridge_points(setting: Setting) -> list[Matrix]:
    """adaSSP: as released, a third of ε each for S, z and the smallest eigenvalue; or right, as we have it."""
    if setting.constants == "right":
        every = releases(setting, cross_noise)
        return [ada_ssp.estimate(one.gram, one.cross, ada_ssp.ridges(one)) for one in every]
    epsilon, delta = setting.epsilon / 3, setting.table.delta / 3
    every = releases(setting, lambda bounds, d, _budget, _constants: third_noise(bounds, d, epsilon, delta))
    truth = exact(setting.table.among(setting.holders))
    smallest = np.linalg.eigvalsh(truth.gram)[:, 0]
    random = np.random.default_rng(setting.seed + 1)
    found = []
    for one in every:
        ridges = published_ridges(smallest, one.columns, setting, random)
        found.append(ada_ssp.estimate(one.gram, one.cross, ridges))
    return found


def third_noise(bounds: Bounds, d: int, epsilon: float, delta: float) -> Matrix:
    """Sds of the released code's noise on S and on z for adaSSP."""
    scale = np.append(np.full(d, bounds.x), bounds.y)
    noise = published_sigma(epsilon, delta) * bounds.x * np.tile(scale, (d + 1, 1))
    noise = np.maximum(np.triu(noise), np.triu(noise).T)
    noise[-1, -1] = np.inf
    return noise


def published_ridges(smallest: Matrix, d: int, setting: Setting, random: np.random.Generator) -> Matrix:
    """Appendix C.2's λ_j from a private release of S_j's smallest eigenvalue."""
    many = log(6 / setting.table.delta)
    sd = sqrt(many) * setting.table.bounds.x**2 / (setting.epsilon / 3)
    seen = np.maximum(smallest + sd * random.normal(size=len(smallest)) - sqrt(many) * sd, 0)
    return np.maximum(sd * sqrt(d * log(2 * d**2 / ada_ssp.RISK)) - seen, 0)


def split_r_hat(draws: Matrix) -> Matrix:
    """Of each run's one chain, its worst coordinate: (runs,)."""
    halves = np.stack(np.split(draws[:, : draws.shape[1] // 2 * 2], 2, axis=1), 1)
    length = halves.shape[2]
    within = halves.var(2, ddof=1).mean(1)
    between = length * halves.mean(2).var(1, ddof=1)
    return np.sqrt(((length - 1) / length * within + between / length) / within).max(-1)


__all__ = ["METHODS", "PUBLISHED", "Setting", "centre_of", "draws_of", "paper_prior", "right_sigma"]
