"""`python -m benchmarks.ddplr.shrinkage [--tiny]`: what a prior of slopes does where noise drowns the sums.

All is simulated, and truths are not drawn from any of the priors. d = 8 features of equal or of geometrically
falling variances, E‖x‖² = 0.1, E[y²] = 0.05 within bounds of 1, of which the features explain 90 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.ddplr.constants import Bounds, cross_noise, svec_noise
from benchmarks.ddplr.ours import question_of
from benchmarks.ldpbi.showing import show_table
from benchmarks.papers import ada_ssp
from benchmarks.sizes import add_sizes
from inference.design.simulated_posteriors import posterior_draws
from inference.likelihoods.holders.statistics import HolderStatistics, exact
from inference.models.holder_regression import holder_regression
from inference.priors import with_priors
from schemas import Question

Matrix = NDArray[np.float64]
FEATURES, RECORDS = 8, 8000
SQUARES, RESPONSE, EXPLAINED = 0.1, 0.05, 0.9
# 38 I of DDPLR in AirQuality's bounds.
WIDE = 74.0
VARIANCES = {"equal": np.ones(FEATURES), "falling": np.geomspace(1, 0.01, FEATURES)}
# Sds of slopes along the features' axes, from the largest variance to the smallest.
SLOPES = {
    "anywhere": np.ones(FEATURES),
    "along the largest": np.geomspace(1, 0.01, FEATURES),
    "along the smallest": np.repeat([0.0, 1.0], FEATURES // 2),
}
SETTINGS = (
    ("equal", "anywhere"),
    ("falling", "anywhere"),
    ("falling", "along the largest"),
    ("falling", "along the smallest"),
)


class Counts(NamedTuple):
    """Truths of each setting, releases of each truth, draws of each posterior."""

    truths: int = 4
    releases: int = 6
    draws: int = 150


class World(NamedTuple):
    """A truth, and its releases: of `table_statistics` and of DDPLR's S and z."""

    covariance: Matrix
    theta: Matrix
    own: list[HolderStatistics]
    theirs: list[HolderStatistics]

    def error(self, estimates: Matrix) -> float:
        """The share of the response's variance that estimates (releases, d) predict wrongly."""
        off = estimates - self.theta
        return float(np.einsum("ri,ij,rj->r", off, self.covariance, off).mean() / RESPONSE)


def main(argv: Sequence[str] | None = None) -> None:
    """Print all settings."""
    parser = argparse.ArgumentParser(description=__doc__)
    add_sizes(parser)
    size = parser.parse_args(argv).size
    counts = size.of(Counts(), Counts(), Counts(1, 1, 50))
    print("\nPart of the response's variance that is predicted wrongly, ε = 1", flush=True)
    random = np.random.default_rng(3)
    for variances, slopes in size.of(SETTINGS, SETTINGS, SETTINGS[:1]):
        for holders in size.of((1, 10), (1, 10), (1,)):
            truths = range(counts.truths)
            worlds = [world(variances, slopes, holders, random, counts.releases) for _ in truths]
            found = errors(worlds, counts.draws)
            show_table([f"{variances}, {slopes}, J = {holders}", *found], [["error", *found.values()]])


def errors(worlds: list[World], draws: int) -> dict[str, float]:
    """Of each estimate, over all worlds."""
    question = question_of(FEATURES)
    law = {"distribution": "normal", "loc": 0, "scale": WIDE}
    wide = with_priors(question, {"coefficients": {feature.id: law for feature in question.features}})
    found = {
        "nothing": [np.zeros((1, FEATURES))] * len(worlds),
        "adaSSP": [np.stack([ridge_of(one) for one in each.theirs]) for each in worlds],
        "marginal": posterior_means(question, worlds, draws),
        "wide prior": posterior_means(wide, worlds, draws),
    }
    return {
        name: float(np.mean([each.error(one) for each, one in zip(worlds, lines, strict=True)]))
        for name, lines in found.items()
    }


def world(
    variances: str, slopes: str, holders: int, random: Generator, releases: int = Counts().releases
) -> World:
    """One truth and its releases."""
    spectrum = VARIANCES[variances]
    axes = np.linalg.qr(random.normal(size=(FEATURES, FEATURES)))[0]
    covariance = SQUARES * (axes * (spectrum / spectrum.sum())) @ axes.T
    theta = axes @ (SLOPES[slopes] * random.normal(size=FEATURES))
    theta = theta * np.sqrt(EXPLAINED * RESPONSE / (theta @ covariance @ theta))
    sd, factor = np.sqrt((1 - EXPLAINED) * RESPONSE), np.linalg.cholesky(covariance)
    tables = []
    for _ in range(holders):
        x = random.normal(size=(RECORDS // holders, FEATURES)) @ factor.T
        tables.append((x, x @ theta + sd * random.normal(size=len(x))))
    budget, bounds, truth = (1.0, 1 / RECORDS), Bounds(1.0, 1.0), exact(tables)
    own, theirs = (
        [noised(truth, noise_of(bounds, FEATURES, budget, "right"), random) for _ in range(releases)]
        for noise_of in (svec_noise, cross_noise)
    )
    return World(covariance, theta, own, theirs)


def noised(truth: HolderStatistics, noise: Matrix, random: Generator) -> HolderStatistics:
    """A release; what has infinite noise is left out."""
    drawn = np.triu(random.normal(size=truth.sums.shape)) * np.where(np.isfinite(noise), noise, 0)
    drawn += np.triu(drawn, 1).transpose(0, 2, 1)
    return replace(truth, sums=np.where(np.isfinite(noise), truth.sums, 0) + drawn, noise=noise)


def ridge_of(statistics: HolderStatistics) -> Matrix:
    """adaSSP's estimate."""
    return ada_ssp.estimate(statistics.gram, statistics.cross, ada_ssp.ridges(statistics))


def posterior_means(question: Question, worlds: list[World], draws: int) -> list[Matrix]:
    """marginal's, of each world (releases, d)."""
    models = [holder_regression(question, one) for each in worlds for one in each.own]
    found = posterior_draws(models, seed=0, draws=draws)
    names = [f"coefficient[{feature.id}]" for feature in question.features]
    return np.split(np.stack([found[name].mean(1) for name in names], axis=-1), len(worlds))


if __name__ == "__main__":
    main()
