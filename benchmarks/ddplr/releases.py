"""One table released many times, and the model that it is fitted with."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.ddplr.constants import Constants, NoiseOf
from benchmarks.ddplr.tables import Table
from inference.likelihoods.holders import HolderStatistics, exact
from inference.published.conjugate import ConjugatePrior

Matrix = NDArray[np.float64]
# Draws of `marginal` for each release.
NUTS = 300


class Setting(NamedTuple):
    """One cell: a table among holders, what each may spend, whose constants, and how long the chains are."""

    table: Table
    holders: int
    epsilon: float
    constants: Constants
    prior: ConjugatePrior
    runs: int
    iterations: int = 10_000
    nuts: int = NUTS
    seed: int = 0

    @property
    def budget(self) -> tuple[float, float]:
        return self.epsilon, self.table.delta


def paper_prior(scatter: Matrix) -> ConjugatePrior:
    """Section 5.1's, with C as the released code has it, 38 I (the text says I / 38)."""
    d = len(scatter)
    return ConjugatePrior(np.zeros(d), 38.0 * np.eye(d), 20.0, 0.5, scatter, d + 1.0, np.zeros(d), 1.0)


def releases(setting: Setting, noise_of: NoiseOf) -> list[HolderStatistics]:
    """The same table released `runs` times."""
    table, bounds = setting.table, setting.table.bounds
    truth = exact(table.split(setting.holders))
    noise = noise_of(bounds, truth.features, setting.budget, setting.constants)
    random = np.random.default_rng([setting.seed, setting.holders])
    found = []
    for _ in range(setting.runs):
        errors = np.triu(random.normal(size=truth.sums.shape)) * np.where(np.isfinite(noise), noise, 0)
        errors += np.triu(errors, 1).transpose(0, 2, 1)
        hidden = np.where(np.isfinite(noise), 1.0, 0.0)
        found.append(replace(truth, sums=truth.sums * hidden + errors, noise=noise))
    return found
