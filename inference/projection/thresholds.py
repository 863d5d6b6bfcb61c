"""The projection that predicts best under a mechanism's own noise: a grid search on auxiliary data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np

from inference.projection.auxiliary import Auxiliary, Projection

# noise(norm): sd of the noise on each svec coordinate of the summed vvᵀ, v = (κ, x, κy), κ = norm/√2, for
# features of at most that norm and everything scaled to [−1, 1] (METHODS 1.3).
Noise = Callable[[float], float]

SD = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
# Of √d, which clips nobody.
NORMS = (0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
# Data sets: so many slopes in all, and never fewer than this many sets.
SLOPES, FEWEST_SETS = 50, 5


@dataclass(frozen=True)
class Thresholds:
    """What the search found.

    error: the share of the response's variance that is predicted wrongly because of noise and projection.
    slopes: what is left of true slopes without any noise; below 1 they are shrunk by projection.
    """

    projection: Projection
    error: float
    slopes: float


def find_thresholds(d: int, n: int, noise: Noise, seed: int = 0) -> Thresholds:
    """The best projection for d features and n records; the same for the same seed.

    One threshold for all features, another for the response (DCA Algorithm 2, step 3), and besides a norm:
    our mechanism's noise depends on it, not on the features' bounds alone.
    """
    noise = cache(noise)
    pairs = [(feature, part * sqrt(d)) for feature in SD for part in (NORMS if d > 1 else (1.0,))]
    found = [
        [data.errors(feature, SD, norm, noise(norm)) for feature, norm in pairs]
        for data in _data_sets(d, n, seed)
    ]
    errors = np.mean(found, axis=0)
    pair, response = np.unravel_index(np.argmin(errors), errors.shape)
    best = Projection(pairs[pair][0], SD[response], pairs[pair][1])
    return Thresholds(best, float(errors.min()), _kept_slopes(d, n, best, seed))


def expected_error(d: int, n: int, noise: Noise, projection: Projection, seed: int = 0) -> float:
    """`Thresholds.error` of a given projection, such as bounds that are merely assumed."""
    feature, response, norm = projection
    found = [data.errors(feature, [response], norm, noise(norm)) for data in _data_sets(d, n, seed)]
    return float(np.mean(found))


def _kept_slopes(d: int, n: int, projection: Projection, seed: int) -> float:
    feature, response, norm = projection
    found = true = 0.0
    for data in _data_sets(d, n, seed):
        found += float(data.slopes @ data.estimates(feature, [response], norm, 0.0)[1:, 0])
        true += float(data.slopes @ data.slopes)
    return found / true


def _data_sets(d: int, n: int, seed: int) -> Iterator[Auxiliary]:
    sets = max(FEWEST_SETS, SLOPES // d)
    return (Auxiliary.draw(d, n, random) for random in np.random.default_rng([seed, d, n]).spawn(sets))
