"""The paper's real tables, prepared as it did, each released many times, and the prior of their fits."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.ddplr.constants import Bounds, Constants, NoiseOf
from benchmarks.ldpbi.data import table
from inference.likelihoods.holders import HolderStatistics, exact
from inference.published.conjugate import ConjugatePrior

Matrix = NDArray[np.float64]
# Draws of `marginal` for each release.
NUTS = 300
FILES = {
    "PowerPlant": "power_plant.csv.gz",
    "BikeSharing": "bike_sharing.csv.gz",
    "AirQuality": "air_quality.csv.gz",
    "3droad": "3droad.csv.gz",
}
TRAINED = 0.8


class Table(NamedTuple):
    """Training rows x (n, d) and y (n,); how to score an estimate of θ is for the experiment to say."""

    x: Matrix
    y: Matrix

    @property
    def bounds(self) -> Bounds:
        """The largest norms in the table, as the paper takes them."""
        return Bounds(float(np.linalg.norm(self.x, axis=1).max()), float(np.abs(self.y).max()))

    @property
    def delta(self) -> float:
        """The paper's δ = 1/n."""
        return 1 / len(self.y)

    def split(self, holders: int) -> list[tuple[Matrix, Matrix]]:
        """Equal parts in order, the last one larger by what is left over."""
        starts = np.arange(1, holders) * (len(self.y) // holders)
        return list(zip(np.split(self.x, starts), np.split(self.y, starts), strict=True))


def real(name: str) -> tuple[Table, Table]:
    """Training and test rows: features standardised, y centred and divided by its largest absolute value."""
    columns = table(FILES[name])
    values = np.column_stack([column.astype(float) for column in columns.values()])
    x, y = values[:, :-1], values[:, -1] - values[:, -1].mean()
    x = (x - x.mean(0)) / x.std(0, ddof=1)
    y = y / np.abs(y).max()
    n = int(np.ceil(TRAINED * len(y)))
    return Table(x[:n], y[:n]), Table(x[n:], y[n:])


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
    truth = exact(setting.table.split(setting.holders))
    noise = noise_of(setting.table.bounds, truth.features, setting.budget, setting.constants)
    random = np.random.default_rng([setting.seed, setting.holders])
    found = []
    for _ in range(setting.runs):
        errors = np.triu(random.normal(size=truth.sums.shape)) * np.where(np.isfinite(noise), noise, 0)
        errors += np.triu(errors, 1).transpose(0, 2, 1)
        hidden = np.where(np.isfinite(noise), 1.0, 0.0)
        found.append(replace(truth, sums=truth.sums * hidden + errors, noise=noise))
    return found
