"""Tail probabilities of counts and of sums of squares: scipy.stats, which has them, takes long to load."""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr, bdtrc, chdtrc, gammaln, xlog1py, xlogy

Values = NDArray[np.float64]


def binomial_at_most(counts: ArrayLike, n: ArrayLike, p: ArrayLike) -> Values:
    """P(X ≤ counts) for X binomial of n trials with chance p; arguments broadcast."""
    count, trials = np.asarray(counts, float), np.asarray(n, np.int64)
    return np.asarray(np.where(count < 0, 0.0, bdtr(np.clip(count, 0, trials), trials, p)))


def binomial_at_least(counts: ArrayLike, n: ArrayLike, p: ArrayLike) -> Values:
    """P(X ≥ counts) for X binomial of n trials with chance p; arguments broadcast."""
    count, trials = np.asarray(counts, float), np.asarray(n, np.int64)
    return np.asarray(np.where(count <= 0, 1.0, bdtrc(np.clip(count - 1, 0, trials), trials, p)))


def binomial_exactly(counts: ArrayLike, n: int, p: float) -> Values:
    """P(X = counts) for X binomial of n trials with chance p."""
    count = np.asarray(counts, float)
    inside = np.clip(count, 0, n)
    ways = gammaln(n + 1) - gammaln(inside + 1) - gammaln(n - inside + 1)
    found = np.exp(ways + xlogy(inside, p) + xlog1py(n - inside, -p))
    return np.asarray(np.where(inside == count, found, 0.0))


def squares_beyond(total: float, degrees: float) -> float:
    """P(χ² > total) of so many degrees of freedom."""
    return float(chdtrc(degrees, total))


def average_ranks(values: Values) -> Values:
    """The rank of each among all, from 1; equal values share the mean of theirs. Of any shape."""
    order = np.argsort(values, axis=None, kind="stable")
    ordered = values.ravel()[order]
    begins = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    places = np.append(np.flatnonzero(begins), len(ordered))
    group = np.cumsum(begins) - 1
    ranks = np.empty(len(ordered))
    ranks[order] = (places[group] + places[group + 1] + 1) / 2
    return ranks.reshape(values.shape)
