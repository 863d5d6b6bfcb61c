"""Auxiliary data (DCA equations 4 to 6), and how well a regression from noisy statistics of them predicts.

x ~ N(0, I), β ~ N(0, I), y | x ~ N(x·β, 1), the paper's λ0 = λ = 1. Everything is in units of each field's
sd, so that only the numbers of features and records and the noise matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Vector = NDArray[np.float64]

# Records that are really drawn; the sums of more are these, scaled up.
MOST_RECORDS = 10_000


class Projection(NamedTuple):
    """feature, response: bounds in sd. norm: of the features after they are scaled to [−1, 1]."""

    feature: float
    response: float
    norm: float


class Projections(NamedTuple):
    """Several bounds of the response at once."""

    feature: float
    responses: Sequence[float]
    norm: float


@dataclass(frozen=True)
class Auxiliary:
    """x (m, d), y (m,) in sd, β (d,) of y in sd; they stand for n records. white: symmetric, svec N(0, 1)."""

    x: Vector
    y: Vector
    slopes: Vector
    n: int
    white: Vector

    @classmethod
    def draw(cls, d: int, n: int, random: Generator) -> Auxiliary:
        """One data set, and one draw of the noise."""
        m = min(n, MOST_RECORDS)
        slopes, x = random.normal(size=d), random.normal(size=(m, d))
        sd = np.sqrt(slopes @ slopes + 1)
        y = (x @ slopes + random.normal(size=m)) / sd
        square = random.normal(size=(d + 2, d + 2))
        return cls(x, y, slopes / sd, n, (square + square.T) / 2)

    def errors(self, projection: Projections, noise_sds: Sequence[float]) -> Vector:
        """The share of y's variance that noisy statistics predict wrongly, (noises, response bounds).

        Without what nobody can predict.
        """
        found = self.estimates(projection, noise_sds)
        wrong = found[:, 1:] - self.slopes[:, None]
        return found[:, 0] ** 2 + np.sum(wrong**2, axis=1)

    def estimates(self, projection: Projections, noise_sds: Sequence[float]) -> Vector:
        """Intercepts and slopes in sd, (noises, d + 1, response bounds).

        noise_sds: of the sums' svec coordinates, v = (κ, x, κy), κ = norm/√2.
        """
        feature, responses, norm = projection
        weight = norm / np.sqrt(2)
        x = self._with_constant(feature, norm, weight)
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
        return _positive_solve(noisy, right + noise[:-1, -1:], noise_sd * np.sqrt(2 * len(matrix)))

    def _with_constant(self, feature: float, norm: float, weight: float) -> Vector:
        scaled = np.clip(self.x / feature, -1, 1)
        lengths = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
        scaled *= np.minimum(1, norm / np.maximum(lengths, norm))[:, None]
        return np.column_stack([np.full(len(scaled), weight), scaled])


def _positive_solve(matrix: Vector, right: Vector, floor: float) -> Vector:
    """matrix⁻¹ right, no eigenvalue below `floor`: what noise alone could make is shrunk, not blown up."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, max(floor, 1e-9 * values[-1]))
    return np.asarray(vectors @ ((vectors.T @ right) / values[:, None]))
