"""What holders released, as the arrays that DDPLR's kernels read."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from jax import Array

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published.conjugate import ConjugatePrior


class Released(NamedTuple):
    """Of J holders, q columns, p = q + 1.

    sums: (J, p, p) noisy Σ uuᵀ. variance: (p, p) of their noise. counts, rows: (J,) records, and rows of the
    tables after averaging. warmup: for how many steps a chain adapts its proposals.
    """

    sums: Array
    variance: Array
    counts: Array
    rows: Array
    warmup: Array
    prior: ConjugatePrior

    @property
    def gram(self) -> Array:
        return self.sums[:, :-1, :-1]

    @property
    def cross(self) -> Array:
        return self.sums[:, :-1, -1]

    @property
    def cross_variance(self) -> Array:
        return self.variance[:-1, -1]

    @property
    def has_intercept(self) -> bool:
        return self.sums.shape[-1] - 1 > self.prior.feature_mean.shape[-1]


def released(statistics: HolderStatistics, prior: ConjugatePrior, warmup: int = 0) -> Released:
    """The arrays of one set of statistics."""
    arrays: tuple[Any, ...] = (
        statistics.sums,
        statistics.noise**2,
        statistics.counts,
        np.floor(statistics.counts / statistics.average),
        np.float64(warmup),
        prior,
    )
    return Released(*arrays)
