"""What several methods ask of statistics: each check gives a reason not to, or ""."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from inference.methods.statistics import HolderStatistics

Check = Callable[[HolderStatistics], str]


def all_of(*checks: Check) -> Check:
    """The first reason that a check gives, or ""."""
    return lambda statistics: next(filter(None, (check(statistics) for check in checks)), "")


def gaussian(statistics: HolderStatistics) -> str:
    """Gaussian noise."""
    return "" if statistics.law == "gaussian" else f"needs Gaussian noise, not {statistics.law} noise"


def public_counts(statistics: HolderStatistics) -> str:
    """Numbers of records without noise."""
    return "needs numbers of records without noise (no count_share)" if statistics.count_sd else ""


def noisy_moments(statistics: HolderStatistics) -> str:
    """All of XᵀX and Xᵀy, with noise; the number of records in XᵀX may have none."""
    moments = statistics.noise[:, :-1].copy()
    if statistics.intercept:
        moments[0, 0] = 1.0
    if not np.all(np.isfinite(moments)):
        return "needs all of XᵀX and Xᵀy"
    return "" if np.all(moments > 0) else "needs statistics with noise; non_private is for those without"


def squares(statistics: HolderStatistics) -> str:
    """yᵀy among what was released."""
    return "" if statistics.has_squares else "needs yᵀy, which was not released"


def no_intercept(statistics: HolderStatistics) -> str:
    """Centred tables: no column of ones."""
    return "is for centred tables without an intercept" if statistics.intercept else ""
