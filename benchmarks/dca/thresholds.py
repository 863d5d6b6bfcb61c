"""Projection thresholds, in standard deviations, that predict best on auxiliary data (DCA Algorithm 2, 3)."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.dca.noise import Budget, Constants, Matrix, scale, sums_sensitivity

GRID = np.arange(1, 21) / 10
REPEATS = 10


@lru_cache(maxsize=64)
def thresholds(records: int, features: int, budget: Budget, constants: Constants) -> tuple[float, float]:
    """One for all features and one for the response, with the least mean absolute error.

    x and β are standard normal, y = xᵀβ + N(0, 1). The authors scale each x to length 1, which the paper does
    not say, and their search adds noise of Δ⁴ times the unit where Δ belongs: published does both.
    """
    random = np.random.default_rng([records, features])
    error = np.zeros((len(GRID), len(GRID)))
    for _ in range(REPEATS):
        x = random.normal(size=(records, features))
        if constants == "published":
            x /= np.linalg.norm(x, axis=1, keepdims=True)
        y = x @ random.normal(size=features) + random.normal(size=records)
        size = features * (features + 1) // 2 + features
        unit = scale(budget, constants) * random.normal(size=size)
        error += _errors(x, y - y.mean(), unit, constants)
    best = np.unravel_index(np.argmin(error), error.shape)
    return float(GRID[best[0]]), float(GRID[best[1]])


def _errors(x: Matrix, y: Matrix, unit: Matrix, constants: Constants) -> NDArray[np.float64]:
    features = x.shape[1]
    noise = np.zeros((features, features))
    noise[np.triu_indices(features)] = unit[:-features]
    noise += np.triu(noise, 1).T
    found = np.empty((len(GRID), len(GRID)))
    clipped_y = [np.clip(y, -c * y.std(), c * y.std()) for c in GRID]
    for i, c in enumerate(GRID * x.std()):
        clipped = np.clip(x, -c, c)
        gram = clipped.T @ clipped
        for j, response in enumerate(clipped_y):
            distance = sums_sensitivity(np.append(np.full(features, c), GRID[j] * y.std()), constants)
            if constants == "published":
                distance = distance**4
            precision = np.eye(features) + gram + distance * noise
            line = np.linalg.solve(precision, clipped.T @ response + distance * unit[-features:])
            found[i, j] = np.mean(np.abs(y - x @ line))
    return found
