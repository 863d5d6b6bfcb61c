"""Gibbs-SS-Noisy: the features' moments are the holders' own, released with noise (DPBLR II-B4).

The authors' published code passes on the exact fourth moments, and their sums for means: neither private nor
what the paper says. Here they are what was released.
"""

from __future__ import annotations

import numpy as np

from inference.likelihoods.holders.statistics import HolderStatistics, Matrix
from inference.published import gibbs_ss, requirements
from inference.published.conjugate import ConjugatePrior
from inference.published.gibbs_ss import Observed

KERNEL = gibbs_ss.GIVEN_MOMENTS


def observed(statistics: HolderStatistics, prior: ConjugatePrior) -> Observed:
    """The kernel's data, moments made those of a distribution."""
    if statistics.fourth_moments is None:
        raise ValueError("statistics without fourth moments")
    fourth = np.asarray(statistics.fourth_moments)
    mean_square = statistics.gram.sum(axis=0) / statistics.counts.sum()
    second = fourth[0, 0] if statistics.intercept else mean_square
    return gibbs_ss.observed(statistics, prior, *repaired(second, fourth, statistics.intercept))


def repaired(second: Matrix, fourth: Matrix, intercept: bool) -> tuple[Matrix, Matrix]:
    """E[wwᵀ] (q, q) and Cov(w_i w_j, w_k w_l) (q, q, q, q), both semidefinite; a constant stays one."""
    q = len(second)
    covariance = fourth - np.einsum("ij,kl->ijkl", second, second)
    covariance = _nearest(covariance.reshape(q**2, q**2)).reshape(fourth.shape)
    if not intercept:
        return _nearest(second), covariance
    mean = second[0]
    centred = second - np.outer(mean, mean)
    return np.outer(mean, mean) + _nearest(centred), covariance


def _nearest(matrix: Matrix) -> Matrix:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)


def _has_moments(statistics: HolderStatistics) -> str:
    if statistics.fourth_moments is not None:
        return ""
    return "needs the features' fourth moments, which were not released; gibbs_ss_update does not"


METHOD = gibbs_ss.method(
    "gibbs_ss_noisy",
    "DPBLR II-B4, private sample moments",
    KERNEL,
    observed,
    requirements.all_of(_has_moments, gibbs_ss.REFUSES),
)
