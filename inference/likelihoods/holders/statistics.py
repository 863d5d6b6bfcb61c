"""Statistics that J data holders released from their tables: sums of second moments, with noise."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Law = Literal["gaussian", "laplace"]


@dataclass(frozen=True)
class HolderStatistics:
    """Noisy Σ uuᵀ of J holders' records, u = (1, x, y), or (x, y) without an intercept, in scaled units.

    sums: (J, p, p), symmetric. noise: (p, p), each entry's scale: sd of Gaussian noise, b of Laplace noise;
    0 where the entry is exact, inf where it was not released (then `sums` has 0). An entry and its mirror
    image are one number. counts: (J,), records of each holder, as released. count_sd: of their noise.
    law: of the noise. intercept: whether u has a constant. average: k where rows are sums of k records over
    √k (DDPLR B.1). fourth_moments: (q, q, q, q) noisy mean of x x x x, for the method that wants it, q = d +
    intercept.
    """

    sums: Matrix
    noise: Matrix
    counts: Matrix
    law: Law = "gaussian"
    intercept: bool = False
    count_sd: float = 0.0
    average: int = 1
    fourth_moments: Matrix | None = None

    @property
    def holders(self) -> int:
        return len(self.sums)

    @property
    def columns(self) -> int:
        """q: the columns of the design matrix, with the constant where there is one."""
        return self.sums.shape[-1] - 1

    @property
    def features(self) -> int:
        return self.columns - self.intercept

    @property
    def gram(self) -> Matrix:
        """S = XᵀX, (J, q, q), X with a column of ones where there is an intercept."""
        return self.sums[:, :-1, :-1]

    @property
    def cross(self) -> Matrix:
        """z = Xᵀy, (J, q)."""
        return self.sums[:, :-1, -1]

    @property
    def noise_variance(self) -> Matrix:
        """The variance of each entry's noise, (p, p); inf where it was not released."""
        return np.square(self.noise) * (2 if self.law == "laplace" else 1)

    @property
    def has_squares(self) -> bool:
        """True if yᵀy was released."""
        return bool(np.isfinite(self.noise[-1, -1]))


def exact(tables: list[tuple[Matrix, Matrix]], intercept: bool = False) -> HolderStatistics:
    """The statistics of tables (X (n, d), y (n,)), without noise: for comparison, never for release."""
    rows = [np.column_stack([np.ones((len(x), int(intercept))), x, y]) for x, y in tables]
    sums = np.stack([u.T @ u for u in rows])
    counts = np.asarray([float(len(u)) for u in rows])
    return HolderStatistics(sums, np.zeros(sums.shape[1:]), counts, intercept=intercept)
