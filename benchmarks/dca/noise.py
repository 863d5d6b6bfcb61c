"""DCA's noise and projection: as the authors' code has them, and as (ε, δ) requires (METHODS 1.4, 1.5).

Released are the upper triangle of XᵀX and Xᵀy of records with |x_j| ≤ c_j, |y| ≤ c_{d+1}.
"""

from __future__ import annotations

from functools import lru_cache
from math import log, sqrt
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.ddplr.constants import right_sigma

Matrix = NDArray[np.float64]
Constants = Literal["published", "right"]
# The data are said to lie within this; the share of ε and δ that finding standard deviations takes.
ASSUMED = 7.5
SHARE = 0.3
# Thresholds that are tried, in standard deviations, each on auxiliary data drawn so often.
GRID = np.arange(1, 21) / 10
REPEATS = 10


class Budget(NamedTuple):
    """What may be spent."""

    epsilon: float
    delta: float

    def part(self, share: float) -> Budget:
        """A share of both."""
        return Budget(share * self.epsilon, share * self.delta)


def scale(budget: Budget, constants: Constants) -> float:
    """Noise sd over sensitivity. Published: equation 1, for ε ≤ 1 only and more than needed."""
    if constants == "published":
        return sqrt(2 * log(1.25 / budget.delta)) / budget.epsilon
    return right_sigma(*budget)


def sums_sensitivity(bounds: Matrix, constants: Constants) -> float:
    """Of the sums, one record exchanged.

    Published: equation 18, which is enough. So is Σ c_j²: its square is at most half the squared Frobenius
    distance of vvᵀ and wwᵀ and half that of their features' diagonals, which but for −(vᵀw)² is convex in all
    v_j², w_j² and largest where each is c_j². Signs that make v ⊥ w reach it.
    """
    squares = bounds**2
    products = np.outer(squares, squares)
    published = sqrt(np.sum(squares[:-1] ** 2) + 4 * np.triu(products, 1).sum())
    return published if constants == "published" else min(published, float(squares.sum()))


def squares_sensitivity(columns: int, constants: Constants) -> float:
    """Of the d + 1 sums of squares; the authors take 7.5 for the largest square, which is 7.5²."""
    return sqrt(columns) * (ASSUMED if constants == "published" else ASSUMED**2)


def honest(clients: int) -> float:
    """By how much the noise's sd grows so that no client knows too much of it (Theorem 1, T = 0)."""
    return sqrt(clients / (clients - 1))


@lru_cache(maxsize=64)
def thresholds(records: int, features: int, budget: Budget, constants: Constants) -> tuple[float, float]:
    """One for all features and one for the response, with the least mean absolute error (Algorithm 2, 3).

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


def _errors(x: Matrix, y: Matrix, unit: Matrix, constants: Constants) -> Matrix:
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
