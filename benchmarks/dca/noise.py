"""Noise of DCA's sums: as the authors' code has it, and as (ε, δ) requires (METHODS 1.4, 1.5).

Released are the upper triangle of XᵀX and Xᵀy of records with |x_j| ≤ c_j, |y| ≤ c_{d+1}.
"""

from __future__ import annotations

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
