"""The unbiased estimator of choice frequencies (Wang et al. 2017), which every frequency oracle shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def unbiased_frequencies(counts: ArrayLike, n: int, p: float, q: float) -> NDArray[np.float64]:
    """(c/n − q) / (p − q) for every choice; entries may be negative and need not sum to 1.

    counts: how many of n reports support each choice, shape (…, k). p, q: the probability that a report
    supports the true choice, and a given other one. Raises ValueError unless n ≥ 1. METHODS 3.4.
    """
    if n < 1:
        raise ValueError("n must be at least 1: without reports there is nothing to estimate from")
    return (np.asarray(counts, dtype=np.float64) / n - q) / (p - q)


def unbiased_sd(frequency: ArrayLike, n: int, p: float, q: float) -> NDArray[np.float64]:
    """The standard deviation of the unbiased estimate of a true frequency, given the answers (…).

    Of n people n·f support the choice with probability p and the rest with q. At f = 0 and unary encoding
    this is Wang et al. 2017's √(4e^ε / n) / (e^ε − 1).
    """
    f = np.asarray(frequency, dtype=np.float64)
    return np.sqrt((f * p * (1 - p) + (1 - f) * q * (1 - q)) / n) / abs(p - q)
