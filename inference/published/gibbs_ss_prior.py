"""Gibbs-SS-Prior: the features' moments are those of a generic prior, and cost no privacy (DPBLR II-B4)."""

from __future__ import annotations

import numpy as np

from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published import gibbs_ss
from inference.published.conjugate import ConjugatePrior
from inference.published.gibbs_ss import Observed
from inference.published.summed_moments import normal_moments

KERNEL = gibbs_ss.GIVEN_MOMENTS


def observed(statistics: HolderStatistics, prior: ConjugatePrior) -> Observed:
    """The kernel's data. The generic prior is normal, with mean and covariance of a record under `prior`."""
    covariance = np.asarray(prior.scatter) / (prior.freedom - statistics.features - 1)
    mean = np.asarray(prior.feature_mean)
    if statistics.intercept:
        covariance = covariance * (1 + 1 / prior.feature_mean_records)
    else:
        mean = np.zeros_like(mean)
    second, four = normal_moments(mean, covariance, statistics.columns)
    return gibbs_ss.observed(statistics, prior, np.asarray(second), np.asarray(four))


METHOD = gibbs_ss.method("gibbs_ss_prior", "DPBLR II-B4, moments from a generic prior", KERNEL, observed)
