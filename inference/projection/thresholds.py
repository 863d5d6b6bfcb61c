"""The projection that predicts best under a mechanism's own noise: a grid search on auxiliary data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import sqrt

import numpy as np

from inference.projection.auxiliary import Auxiliary, Projection, Projections, Vector

# noise(norm): sd of the noise on each svec coordinate of the summed vvᵀ, v = (κ, x, κy), κ = norm/√2, for
# features of at most that norm and everything scaled to [−1, 1] (METHODS 1.3).
Noise = Callable[[float], float]

SD = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0)
# Of √d, which clips nobody.
NORMS = (0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0)
# sd that no one reaches.
NOBODY = 50.0
# So much of the expected error may come from projection: about half an sd of a slope's posterior.
MOST_BIAS = 0.25
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
    our mechanism's noise depends on it, not on the features' bounds alone. Only projections count that cause
    at most MOST_BIAS of their error themselves: the models of the second round do not know of them.
    """
    noise = cache(noise)
    pairs = [(feature, part * sqrt(d)) for feature in SD for part in (NORMS if d > 1 else (1.0,))]
    found = [_errors_and_biases(data, pairs, noise) for data in _data_sets(d, n, seed)]
    errors, biases = np.mean(found, axis=0)
    errors = np.where(biases <= MOST_BIAS * errors, errors, np.inf)
    pair, response = np.unravel_index(np.argmin(errors), errors.shape)
    best = Projection(pairs[pair][0], SD[response], pairs[pair][1])
    return Thresholds(best, float(errors.min()), _kept_slopes(d, n, best, seed))


def _errors_and_biases(data: Auxiliary, pairs: Sequence[tuple[float, float]], noise: Noise) -> Vector:
    """(2, pairs, responses): the errors, and how much the features' or the response's projection adds.

    Of the two, alone and without noise, the larger: that they make up for one another on auxiliary data
    does not mean that they do so elsewhere.
    """
    all_bounds = (*SD, NOBODY)
    of_nobody = data.errors(Projections(NOBODY, all_bounds, NOBODY * sqrt(data.x.shape[1])), [0.0])[0]
    found = np.stack([data.errors(Projections(x, all_bounds, r), [noise(r), 0.0]) for x, r in pairs])
    of_features = found[:, 1, -1:] - of_nobody[-1]
    of_response = of_nobody[:-1] - of_nobody[-1]
    return np.stack([found[:, 0, :-1], np.maximum(of_features, of_response)])


def expected_error(d: int, n: int, noise: Noise, projection: Projection, seed: int = 0) -> float:
    """`Thresholds.error` of a given projection, such as bounds that are merely assumed."""
    feature, response, norm = projection
    tried = Projections(feature, [response], norm)
    found = [data.errors(tried, [noise(norm)]) for data in _data_sets(d, n, seed)]
    return float(np.mean(found))


def _kept_slopes(d: int, n: int, projection: Projection, seed: int) -> float:
    feature, response, norm = projection
    tried, found, true = Projections(feature, [response], norm), 0.0, 0.0
    for data in _data_sets(d, n, seed):
        found += float(data.slopes @ data.estimates(tried, [0.0])[0, 1:, 0])
        true += float(data.slopes @ data.slopes)
    return found / true


def _data_sets(d: int, n: int, seed: int) -> Iterator[Auxiliary]:
    sets = max(FEWEST_SETS, SLOPES // d)
    return (Auxiliary.draw(d, n, random) for random in np.random.default_rng([seed, d, n]).spawn(sets))
