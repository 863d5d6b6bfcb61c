"""Unbiased frequency estimates, and repairs of those that are negative or do not sum to 1.

Wang, Lopuhaä-Zwakenberg, Li, Skoric, Li: Locally Differentially Private Frequency Estimation with
Consistency (NDSS 2020). All take estimates of shape (…, k) and return the same shape.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

Frequencies = NDArray[np.float64]


def unbiased_frequencies(counts: ArrayLike, n: int, p: float, q: float) -> Frequencies:
    """(c/n − q) / (p − q) for every choice; entries may be negative and need not sum to 1.

    counts: how many of n reports support each choice, shape (…, k). p, q: the probability that a report
    supports the true choice, and a given other one. METHODS 3.4.
    """
    return (np.asarray(counts, dtype=np.float64) / n - q) / (p - q)


def norm(estimates: ArrayLike) -> Frequencies:
    """Norm: what is missing to 1 is added in equal parts; entries may stay negative.

    It is the least-squares solution under the sum alone (Hay et al. 2010).
    """
    raw = np.asarray(estimates, dtype=np.float64)
    return np.asarray(raw + (1 - raw.sum(-1, keepdims=True)) / raw.shape[-1])


def norm_mul(estimates: ArrayLike) -> Frequencies:
    """Norm-Mul: negative entries become 0, the rest is divided by its sum (all equal, if that is 0)."""
    positive = np.maximum(np.asarray(estimates, dtype=np.float64), 0.0)
    total = positive.sum(-1, keepdims=True)
    equal = 1 / positive.shape[-1]
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), equal)


def norm_sub(estimates: ArrayLike) -> Frequencies:
    """Norm-Sub: the Euclidean projection on the simplex, max(v − t, 0) with t such that the sum is 1.

    It is the least-squares solution under the sum and non-negativity. Duchi, Shalev-Shwartz, Singer,
    Chandra: Efficient Projections onto the l1-Ball (ICML 2008), in O(k log k).
    """
    raw = np.asarray(estimates, dtype=np.float64)
    falling = -np.sort(-raw, axis=-1)
    shift = (np.cumsum(falling, axis=-1) - 1) / np.arange(1, raw.shape[-1] + 1)
    last = np.sum(falling > shift, axis=-1, keepdims=True) - 1
    return np.asarray(np.maximum(raw - np.take_along_axis(shift, last, axis=-1), 0.0))


# Those that need nothing but the estimates, by their published names.
PROJECTIONS: Mapping[str, Callable[[ArrayLike], Frequencies]] = {
    "norm": norm,
    "norm-mul": norm_mul,
    "norm-sub": norm_sub,
}
