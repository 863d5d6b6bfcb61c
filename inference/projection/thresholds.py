"""The projection that predicts best under a mechanism's own noise: a grid search on auxiliary data.

In auxiliary data (DCA equations 4 to 6) x ~ N(0, I), β ~ N(0, I), y | x ~ N(x·β, 1), the paper's λ0 = λ =
1. Everything is in units of each field's sd, so that only the numbers of features and records and the noise
matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Vector = NDArray[np.float64]

# Records that are actually drawn; sums of more records are these sums, scaled up.
MOST_RECORDS = 10_000


class Projection(NamedTuple):
    """feature, response: bounds in sd. norm: of the features after they are scaled to [−1, 1]."""

    feature: float
    response: float
    norm: float


@dataclass(frozen=True)
class Auxiliary:
    """x (m, d), y (m,) in sd, β (d,) of y in sd; they represent n records. white: symmetric, svec N(0, 1)."""

    x: Vector
    y: Vector
    slopes: Vector
    n: int
    white: Vector

    @classmethod
    def draw(cls, d: int, n: int, random: Generator) -> Auxiliary:
        """Draw one data set, and one draw of the noise."""
        m = min(n, MOST_RECORDS)
        slopes, x = random.normal(size=d), random.normal(size=(m, d))
        sd = np.sqrt(slopes @ slopes + 1)
        y = (x @ slopes + random.normal(size=m)) / sd
        square = random.normal(size=(d + 2, d + 2))
        return cls(x, y, slopes / sd, n, (square + square.T) / 2)

    def errors(
        self, feature: float, norm: float, responses: Sequence[float], noise_sds: Sequence[float]
    ) -> Vector:
        """Return the share of y's variance that noisy statistics predict wrongly, (noises, response bounds).

        The unpredictable part of the variance is excluded.
        """
        found = self.estimates(feature, norm, responses, noise_sds)
        wrong = found[:, 1:] - self.slopes[:, None]
        return found[:, 0] ** 2 + np.sum(wrong**2, axis=1)

    def estimates(
        self, feature: float, norm: float, responses: Sequence[float], noise_sds: Sequence[float]
    ) -> Vector:
        """Return intercepts and slopes in sd, (noises, d + 1, response bounds).

        feature, norm: as of a `Projection`. responses: several bounds of the response at once. noise_sds: of
        the sums' svec coordinates, v = (κ, x, κy), κ = norm/√2.
        """
        weight = norm / np.sqrt(2)
        scaled = np.clip(self.x / feature, -1, 1)
        lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        scaled *= np.minimum(1, norm / np.maximum(lengths, norm))[:, None]
        x = np.column_stack([np.full(len(scaled), weight), scaled])
        y = weight * np.clip(self.y[:, None] / np.asarray(responses), -1, 1)
        scale = self.n / len(x)
        matrix, right = scale * (x.T @ x), scale * (x.T @ y)
        found = np.stack([self._solve(matrix, right, noise_sd) for noise_sd in noise_sds])
        units = np.concatenate([[weight], np.full(x.shape[1] - 1, 1 / feature)])
        return np.asarray(units[:, None] * found * np.asarray(responses) / weight)

    def _solve(self, matrix: Vector, right: Vector, noise_sd: float) -> Vector:
        noise = noise_sd * self.white
        noisy = matrix + noise[:-1, :-1]
        noisy[0, 0] = matrix[0, 0]
        # No eigenvalue is below that of pure noise, which is shrunk, not blown up.
        values, vectors = np.linalg.eigh(noisy)
        values = np.maximum(values, max(noise_sd * np.sqrt(2 * len(matrix)), 1e-9 * values[-1]))
        return np.asarray(vectors @ ((vectors.T @ (right + noise[:-1, -1:])) / values[:, None]))


# noise(norm): sd of the noise on each svec coordinate of the summed vvᵀ, v = (κ, x, κy), κ = norm/√2, for
# features of at most that norm and everything scaled to [−1, 1] (METHODS 1.3).
Noise = Callable[[float], float]

SD = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
# As shares of √d, which clips no record.
NORMS = (0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
# An sd that no value reaches.
NOBODY = 50.0
# So much of the expected error may come from projection: about half an sd of a slope's posterior.
MOST_BIAS = 0.25
# Data sets: so many slopes in all, and never fewer than this many sets.
SLOPES, FEWEST_SETS = 50, 5


@dataclass(frozen=True)
class Thresholds:
    """The results of the search.

    error: the share of the response's variance that is predicted wrongly because of noise and projection.
    slopes: the estimates of a true slope of 1 without any noise; below 1 the projection shrinks them.
    """

    projection: Projection
    error: float
    slopes: float


def find_thresholds(d: int, n: int, noise: Noise, seed: int = 0) -> Thresholds:
    """Find the best projection for d features and n records; the same for the same seed.

    One threshold for all features, another for the response (DCA Algorithm 2, step 3), and in addition a
    norm: our mechanism's noise depends on it, not on the features' bounds alone. Only projections count that
    cause at most MOST_BIAS of their error themselves: the models of the second round do not know of them.
    """
    # 1. The projection with the smallest error.
    noise = cache(noise)
    pairs = [(feature, part * sqrt(d)) for feature in SD for part in (NORMS if d > 1 else (1.0,))]
    found = [_errors_and_biases(data, pairs, noise) for data in data_sets(d, n, seed)]
    errors, biases = np.mean(found, axis=0)
    errors = np.where(biases <= MOST_BIAS * errors, errors, np.inf)
    pair, response = np.unravel_index(np.argmin(errors), errors.shape)
    best = Projection(pairs[pair][0], SD[response], pairs[pair][1])
    # 2. How much of a slope the best projection keeps.
    kept, true = 0.0, 0.0
    for data in data_sets(d, n, seed):
        estimates = data.estimates(best.feature, best.norm, [best.response], [0.0])
        kept += float(data.slopes @ estimates[0, 1:, 0])
        true += float(data.slopes @ data.slopes)
    return Thresholds(best, float(errors.min()), kept / true)


def _errors_and_biases(data: Auxiliary, pairs: Sequence[tuple[float, float]], noise: Noise) -> Vector:
    """Return (2, pairs, responses): the errors, and how much of them a projection adds.

    This is the larger of the features' and the response's part, each alone and without noise: that they
    compensate for one another on auxiliary data does not mean that they do so elsewhere.
    """
    all_bounds = (*SD, NOBODY)
    of_nobody = data.errors(NOBODY, NOBODY * sqrt(data.x.shape[1]), all_bounds, [0.0])[0]
    found = np.stack([data.errors(x, norm, all_bounds, [noise(norm), 0.0]) for x, norm in pairs])
    of_features = found[:, 1, -1:] - of_nobody[-1]
    of_response = of_nobody[:-1] - of_nobody[-1]
    return np.stack([found[:, 0, :-1], np.maximum(of_features, of_response)])


def data_sets(d: int, n: int, seed: int) -> Iterator[Auxiliary]:
    """Yield the auxiliary data sets of a search."""
    sets = max(FEWEST_SETS, SLOPES // d)
    return (Auxiliary.draw(d, n, random) for random in np.random.default_rng([seed, d, n]).spawn(sets))
