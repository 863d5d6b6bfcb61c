"""Gibbs-SS-Update: the features' mean and covariance are drawn with the rest (DPBLR II-B4)."""

from __future__ import annotations

import numpy as np
from jax import Array

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published import gibbs_ss
from inference.published.conjugate import ConjugatePrior
from inference.published.gibbs_ss import Observed
from inference.published.normal_inverse_wishart import draw_features
from inference.published.summed_moments import normal_moments


def _moments(key: Array, sums: Array, data: Observed) -> tuple[Array, Array]:
    gram = sums[:-1, :-1]
    mean, covariance = draw_features(key, gram, data.counts.sum(), data.prior)
    return normal_moments(mean, covariance, len(gram))


KERNEL = gibbs_ss.kernel(_moments)


def observed(statistics: HolderStatistics, prior: ConjugatePrior) -> Observed:
    """The kernel's data: no moments, since it draws them."""
    return gibbs_ss.observed(statistics, prior, np.zeros(()), np.zeros(()))


METHOD = gibbs_ss.method("gibbs_ss_update", "DPBLR II-B4, hierarchical normal prior", KERNEL, observed)
