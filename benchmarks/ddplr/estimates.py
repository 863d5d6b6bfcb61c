"""Draws of θ by every method from many noisy releases of one table: one compiled program for each shape."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from math import log, sqrt
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from benchmarks.ddplr.constants import (
    Bounds,
    NoiseOf,
    cross_noise,
    published_sigma,
    squares_noise,
    svec_noise,
)
from benchmarks.ddplr.releases import Setting, releases
from benchmarks.papers import ada_ssp, mcmc_bs
from inference.design.simulated_posteriors import posterior_draws
from inference.likelihoods.holders import HolderStatistics, exact
from inference.models.base import Model
from inference.models.holder_regression import holder_regression
from inference.published import mcmc_fixeds, mcmc_normalx
from inference.published.base import Kernel, Run, one_chain
from inference.published.conjugate import ConjugatePrior
from inference.published.mcmc_fixeds import Released, released
from schemas import Question, Study

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


def ridge_points(setting: Setting) -> list[Matrix]:
    """Published: a third of ε each for S, z and the smallest eigenvalue. Right: that is read off S."""
    if setting.constants == "right":
        every = releases(setting, cross_noise)
        return [ada_ssp.estimate(one.gram, one.cross, ada_ssp.ridges(one)) for one in every]
    epsilon, delta = setting.epsilon / 3, setting.table.delta / 3
    every = releases(setting, lambda bounds, d, _budget, _constants: third_noise(bounds, d, epsilon, delta))
    truth = exact(setting.table.split(setting.holders))
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


def default_draws(every: list[HolderStatistics], bounds: Bounds, draws: int) -> Matrix:
    """θ in own units (runs, draws, d), one chain each, as `ldpkit fit` runs `marginal`."""
    question = question_of(every[0].features)
    models = [model_of(question, one, bounds) for one in every]
    found = posterior_draws(models, seed=0, draws=draws)
    names = [f"coefficient[{feature.id}]" for feature in question.features]
    return np.stack([found[name] for name in names], axis=-1) * bounds.y / bounds.x


def model_of(question: Question, statistics: HolderStatistics, bounds: Bounds) -> Model:
    """The study's model of statistics in own units, scaled to features within a ball and |y| ≤ 1."""
    unit = np.append(np.full(statistics.features, bounds.x), bounds.y)
    scale = np.outer(unit, unit)
    return holder_regression(
        question, replace(statistics, sums=statistics.sums / scale, noise=statistics.noise / scale)
    )


def question_of(features: int) -> Question:
    """Centred features in a ball of radius 1, a response in −1…1, priors left to their defaults."""
    bounds = ["-1", "1"]
    question = {
        "id": "table",
        "ask": "table",
        "features": [{"id": f"x{index}", "bounds": bounds} for index in range(features)],
        "norm": "1",
        "response": {"id": "y", "bounds": bounds},
        "mechanism": {"name": "table_statistics", "epsilon": "1", "delta": "1e-6", "intercept": False},
        "model": {"name": "linear_regression"},
    }
    document = {
        "format": "ldpkit.study/1",
        "id": "ddplr",
        "version": 1,
        "title": "DDPLR",
        "respondent": "holder",
    }
    return Study({**document, "questions": [question]}).questions[0]
