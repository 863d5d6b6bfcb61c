"""The conjugate posterior from exact statistics: what privacy costs is measured against it (DPBLR II-A)."""

from __future__ import annotations

import numpy as np
from jax import Array

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published import independent, requirements
from inference.published.conjugate import ConjugatePrior, Values
from inference.published.normal_inverse_gamma import draw_regression
from inference.published.prior_forms import IN_SDS

Summed = tuple[Values, Values, ConjugatePrior]


def _draw(key: Array, data: Summed) -> dict[str, Array]:
    theta, variance = draw_regression(key, *data)
    return {"theta": theta, "variance": variance}


KERNEL = independent.independent(_draw)


def summed(statistics: HolderStatistics, prior: ConjugatePrior) -> Summed:
    """The kernel's data: all holders' sums (p, p), number of records, prior."""
    return statistics.sums.sum(axis=0), np.asarray(statistics.counts.sum()), prior


def _exact(statistics: HolderStatistics) -> str:
    return "" if statistics.is_exact else "needs exact statistics; naive takes noisy ones for exact"


METHOD = independent.method(
    "non_private",
    "DPBLR II-A",
    requirements.all_of(_exact, requirements.unaveraged),
    KERNEL,
    summed,
    IN_SDS,
)
