"""How calibrated posteriors are (ranks of the truth), and how near to the non-private ones (MMD)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from benchmarks.dpblr.posteriors import Drawn
from benchmarks.dpblr.worlds import Matrix, World

PARAMETERS = ("intercept", "slope", "variance")


def by_parameter(drawn: Drawn) -> dict[str, Matrix]:
    """{parameter: draws (releases, draws)}."""
    return dict(zip(PARAMETERS, (drawn.theta[..., 0], drawn.theta[..., 1], drawn.variance), strict=True))


def truths(worlds: Sequence[World]) -> dict[str, Matrix]:
    """{parameter: its true value in each world}."""
    return {
        "intercept": np.array([world.theta[0] for world in worlds]),
        "slope": np.array([world.theta[1] for world in worlds]),
        "variance": np.array([world.variance for world in worlds]),
    }


def ranks(drawn: Drawn, worlds: Sequence[World]) -> dict[str, Matrix]:
    """{parameter: share of each posterior's draws below the truth}: uniform if calibrated."""
    true = truths(worlds)
    return {name: (draws < true[name][:, None]).mean(axis=1) for name, draws in by_parameter(drawn).items()}


def uniformity(below: Matrix) -> tuple[float, float]:
    """Kolmogorov-Smirnov distance of ranks from uniform, and its p-value."""
    found = stats.kstest(below, "uniform")
    return float(found.statistic), float(found.pvalue)


def mmd_squared(one: Matrix, other: Matrix) -> float:
    """Unbiased, of two samples (m,) of one parameter, kernel exp(−(p − q)²/2) (Gretton et al. 2012)."""
    within = [_mean_kernel(sample, sample, apart=True) for sample in (one, other)]
    return sum(within) - 2 * _mean_kernel(one, other, apart=False)


def published_mmd_squared(one: Matrix, other: Matrix) -> float:
    """DPBLR's equations 9 to 11: the kernel is no function of p − q but the density of (p, q) itself."""

    def kernel(p: Matrix, q: Matrix) -> Matrix:
        return np.exp(-(p[:, None] ** 2 + q[None] ** 2) / 2) / (2 * np.pi)

    off = 1 - np.eye(len(one))
    total = kernel(one, one) + kernel(other, other) - kernel(one, other) - kernel(other, one)
    return float((total * off).sum() / off.sum())


def _mean_kernel(one: Matrix, other: Matrix, apart: bool) -> float:
    values = np.exp(-((one[:, None] - other[None]) ** 2) / 2)
    if not apart:
        return float(values.mean())
    return float((values.sum() - len(one)) / (len(one) * (len(one) - 1)))
