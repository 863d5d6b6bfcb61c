"""Posterior draws of every method from many releases: one compiled program for each method and size."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np

from benchmarks.dpblr.worlds import BOUNDS, PRIOR, Matrix, Noise, Release
from benchmarks.papers import noisy_as_exact
from benchmarks.papers.marginal import conjugate_model
from inference.design.simulated_posteriors import posterior_draws
from inference.likelihoods.holders import HolderStatistics
from inference.published import gibbs_ss, mcmc_fixeds
from inference.published.base import Kernel, Run, one_chain
from inference.published.conjugate import ConjugatePrior
from inference.published.mcmc_ind import records_model

DataOf = Callable[[HolderStatistics, ConjugatePrior], Any]
KERNELS: dict[str, tuple[Kernel, DataOf]] = {
    "non_private": (noisy_as_exact.NON_PRIVATE_KERNEL, noisy_as_exact.summed),
    "naive": (noisy_as_exact.NAIVE_KERNEL, noisy_as_exact.summed),
    "gibbs_ss_noisy": (gibbs_ss.GIVEN_MOMENTS, gibbs_ss.observed),
    "gibbs_ss_update": (gibbs_ss.DRAWN_MOMENTS, gibbs_ss.observed),
}
METHODS = (*KERNELS, "mcmc_ind", "bayes_fixeds_fast", "marginal")
CLOSED = ("non_private", "naive")


class Drawn(NamedTuple):
    """Of each release: theta (releases, draws, 2), variance (releases, draws)."""

    theta: Matrix
    variance: Matrix


class Lengths(NamedTuple):
    """Steps of a Gibbs chain thrown away and kept (every fifth of them), and of methods that use NUTS.

    tables: of each setting.
    """

    gibbs: tuple[int, int] = (2000, 5000)
    exact: tuple[int, int] = (300, 1000)
    tables: int = 100


def methods_for(noise: Noise) -> tuple[str, ...]:
    """bayes_fixeds_fast is for Gaussian noise."""
    return tuple(name for name in METHODS if name != "bayes_fixeds_fast" or noise == "gaussian")


def statistics_for(method: str, release: Release) -> HolderStatistics:
    """What this method is given of a release."""
    if method == "non_private":
        return release.exact
    return release.halved if method == "gibbs_ss_noisy" else release.noisy


def draws_of(method: str, releases: Sequence[Release], lengths: Lengths) -> Drawn:
    """One chain for each release."""
    every = [statistics_for(method, one) for one in releases]
    if method in ("marginal", "mcmc_ind"):
        model_of = records_model if method == "mcmc_ind" else partial(conjugate_model, in_sds=True)
        models = [model_of(one, PRIOR) for one in every]
        found = posterior_draws(models, seed=0, draws=lengths.exact[1])
        return Drawn(found["theta"], found["variance"])
    if method == "bayes_fixeds_fast":
        return _fixed(every)
    kernel, data_of = KERNELS[method]
    data = [data_of(one, PRIOR) for one in every]
    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf, float) for leaf in leaves]), *data)
        keys = jax.random.split(jax.random.key(0), len(data))
        sites = _program(kernel, _run(method, lengths))(keys, stacked)
        return Drawn(np.asarray(sites["theta"]), np.asarray(sites["variance"]))


def _run(method: str, lengths: Lengths) -> Run:
    if method in CLOSED:
        return Run(0, 0, lengths.exact[1])
    warmup, kept = lengths.gibbs
    return Run(0, warmup, kept // 5, thin=5)


def _fixed(every: list[HolderStatistics]) -> Drawn:
    """σ² is a third of the response's bound, squared; the prior of θ as wide as the others' on average."""
    variance = (BOUNDS[2] / 3) ** 2
    prior = PRIOR._replace(theta_covariance=np.eye(2))
    random = np.random.default_rng(0)
    theta = [
        random.multivariate_normal(*mcmc_fixeds.fast_posterior(one, prior, variance), 1000) for one in every
    ]
    return Drawn(np.stack(theta), np.full((len(every), 1000), variance))


@lru_cache(maxsize=16)
def _program(kernel: Kernel, run: Run) -> Callable[..., Any]:
    return jax.jit(jax.vmap(lambda key, data: one_chain(kernel, key, data, run)))
