"""How calibrated posteriors are: ranks of the truth."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

from benchmarks.dpblr.posteriors import Drawn
from benchmarks.dpblr.worlds import Matrix, World

PARAMETERS = ("intercept", "slope", "variance")


def ranks(drawn: Drawn, worlds: Sequence[World]) -> dict[str, Matrix]:
    """{parameter: share of each posterior's draws below the truth}: uniform if calibrated."""
    draws = (drawn.theta[..., 0], drawn.theta[..., 1], drawn.variance)
    truths = zip(*[(*world.theta, world.variance) for world in worlds], strict=True)
    return {
        name: (below < np.array(truth)[:, None]).mean(axis=1)
        for name, below, truth in zip(PARAMETERS, draws, truths, strict=True)
    }


def uniformity(below: Matrix) -> tuple[float, float]:
    """Kolmogorov-Smirnov distance of ranks from uniform, and its p-value."""
    found = stats.kstest(below, "uniform")
    return float(found.statistic), float(found.pvalue)
