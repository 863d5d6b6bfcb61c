"""Requirements that several methods share: each check gives a reason against the method, or ""."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inference.likelihoods.holders.statistics import HolderStatistics

Check = Callable[[HolderStatistics], str]


def all_of(*checks: Check) -> Check:
    """Return a check that gives the first reason of these checks, or ""."""
    return lambda statistics: next(filter(None, (check(statistics) for check in checks)), "")


def gaussian(statistics: HolderStatistics) -> str:
    """Require Gaussian noise."""
    return "" if statistics.law == "gaussian" else f"needs Gaussian noise, not {statistics.law} noise"


def public_counts(statistics: HolderStatistics) -> str:
    """Require numbers of records without noise."""
    return "needs numbers of records without noise (no count_share)" if statistics.count_sd else ""


def moments(statistics: HolderStatistics) -> str:
    """Require all of XᵀX and Xᵀy."""
    return "" if np.all(np.isfinite(statistics.noise[:, :-1])) else "needs all of XᵀX and Xᵀy"


def noisy_moments(statistics: HolderStatistics) -> str:
    """Require all of XᵀX and Xᵀy, with noise; the number of records in XᵀX may have none."""
    noise = statistics.noise[:, :-1].copy()
    if statistics.intercept:
        noise[0, 0] = 1.0
    if reason := moments(statistics):
        return reason
    return "" if np.all(noise > 0) else "needs statistics with noise"


def unaveraged(statistics: HolderStatistics) -> str:
    """Require rows that are records."""
    return "is for records, not for averages of records (average)" if statistics.average > 1 else ""
