"""Data holders' noisy sums of second moments, and what makes the likelihood of thousands of holders cheap.

Noise of one shape allows a density in O(p^3). A holder's precision P(n) and log-determinant are smooth
functions of its number of records n alone: in the generalised eigenbasis they are 1 / (1 + q n) and log(1 + q
n). Interpolation in log n gives them from a few nodes: P(n) = sum_k L_k(n) P(n_k). The holders j then enter
only through, for each k, the quadratic form sum_j L_k(n_j) (s_j, n_j) (s_j, n_j)', of rank D + 1 at most: its
eigenvectors replace the holders.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from jax import Array
from numpy.polynomial.chebyshev import chebvander
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Values = Matrix | Array
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


# How far noise scales may deviate from the assumed shape.
SHAPE_TOLERANCE = 1e-6
# A variance so large that nothing depends on the entry.
NOT_RELEASED = 1e40


class NoiseShape(NamedTuple):
    """Noise with sd scale_i scale_j sqrt 1/2 on entries (i, j) off the diagonal, and other sds on it.

    In sums divided by scale_i scale_j the noise is isotropic in svec coordinates, of variance 1, except on
    diagonal entries `places`, with variance 1 + excess: NOT_RELEASED for an entry that was not released.
    """

    scale: Values
    places: tuple[int, ...]
    excess: Values


def noise_shape(noise: Matrix, constant: bool) -> NoiseShape | None:
    """Return the shape of noise sds (p, p); None if sds off the diagonal are no product of two numbers.

    constant: whether entry (0, 0) is the number of records, which the likelihood conditions on.
    """
    scale = _factors(noise)
    if scale is None:
        return None
    excess = np.minimum(np.square(np.diag(noise) / scale**2) - 1, NOT_RELEASED)
    # An entry that is known exactly has no residual, whatever its variance.
    excess[np.diag(noise) == 0] = 0.0
    if constant:
        excess[0] = 0.0
    if np.any(excess <= -1):
        return None
    places = tuple(int(i) for i in np.flatnonzero(np.abs(excess) > SHAPE_TOLERANCE))
    return NoiseShape(scale, places, excess[list(places)])


def _factors(noise: Matrix) -> Matrix | None:
    """Return scale (p,) with noise_ij = scale_i scale_j / sqrt 2 for i < j."""
    p = len(noise)
    rows, columns = np.triu_indices(p, 1)
    above = noise[rows, columns]
    if not (np.isfinite(above) & (above > 0)).all():
        return None
    logs = np.log(above * np.sqrt(2))
    equations = np.zeros((len(rows), p))
    equations[np.arange(len(rows)), rows] = equations[np.arange(len(rows)), columns] = 1
    if p == 2:
        # One product does not determine its factors: the diagonal of the feature does.
        equations = np.vstack([equations, [2.0, 0.0]])
        logs = np.append(logs, np.log(noise[0, 0]))
    found, *_ = np.linalg.lstsq(equations, logs, rcond=None)
    fits = np.allclose(equations @ found, logs, rtol=0, atol=SHAPE_TOLERANCE)
    return np.exp(found) if fits else None


# Error of the interpolated functions, relative to their values at middling numbers of records.
TOLERANCE = 1e-10


class HolderGroups(NamedTuple):
    """Sums (k, e, p, p): `records` n and `weights` (k, e); all e have the precision of `at` (k,) records.

    holders: (k,) weights of the log-determinants; they sum to the number of holders.
    """

    at: Values
    holders: Values
    records: Values
    weights: Values


def one_by_one(statistics: Matrix, records: Matrix) -> tuple[Matrix, HolderGroups]:
    """Keep every holder separate: statistics (j, p, p), records (j,)."""
    ones = np.ones(len(records))
    return statistics[:, None], HolderGroups(records, ones, records[:, None], ones[:, None])


def grouped(statistics: Matrix, records: Matrix) -> tuple[Matrix, HolderGroups]:
    """Return holders of `records` > 0 in the cheaper of both forms; equal to 1e-8 of the log-density."""
    p = statistics.shape[-1]
    rows, columns = np.triu_indices(p)
    most = len(rows) + 1
    # Even a single node would save nothing.
    if len(records) <= most:
        return one_by_one(statistics, records)
    at, shares = interpolation(records)
    if len(records) <= len(at) * most:
        return one_by_one(statistics, records)
    vectors = np.column_stack([statistics[:, rows, columns], records])
    parts = [_stand_ins(vectors, share) for share in shares]
    stand_ins, weights = (np.stack(column) for column in zip(*parts, strict=True))
    sums = np.zeros((*weights.shape, p, p))
    sums[..., rows, columns] = sums[..., columns, rows] = stand_ins[..., :-1]
    return sums, HolderGroups(at, shares.sum(axis=1), stand_ins[..., -1], weights)


def interpolation(records: Matrix) -> tuple[Matrix, Matrix]:
    """Return nodes n_k (k,) in the range of the numbers of records (j,), and the weights L_k(n_j) (k, j).

    The nodes are Chebyshev's in log n, where the functions' poles are pi or farther from the real axis.
    """
    distinct, where = np.unique(records, return_inverse=True)
    logs = np.log(distinct)
    middle, half = (logs[-1] + logs[0]) / 2, max(float(logs[-1] - logs[0]) / 2, 1e-3)
    # By as much each further node makes the error smaller (Bernstein's ellipse through the nearest pole).
    gain = np.pi / half + np.hypot(1, np.pi / half)
    size = int(np.ceil(-np.log(TOLERANCE) / np.log(gain))) + 1
    if len(distinct) <= size:
        return distinct, np.eye(len(distinct))[:, where.ravel()]
    nodes = np.cos(np.pi * (np.arange(size) + 0.5) / size)
    values = chebvander((logs - middle) / half, size - 1).T
    shares: Any = np.linalg.solve(chebvander(nodes, size - 1).T, values)
    return np.exp(middle + half * nodes), shares[:, where.ravel()]


def _stand_ins(vectors: Matrix, shares: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvectors (D + 1, D + 1) of sum_j share_j v_j v_j', and their eigenvalues, as weights."""
    moments = (vectors * shares[:, None]).T @ vectors
    # Equal sizes of both kinds of entries keep the small eigenvalues exact.
    unit = np.sqrt(np.mean(np.square(vectors), axis=0))
    unit[unit == 0] = 1.0
    values, axes = np.linalg.eigh(moments / np.outer(unit, unit))
    return axes.T * unit, values
