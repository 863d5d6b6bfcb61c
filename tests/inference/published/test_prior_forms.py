"""A posterior states the prior that its method used; methods that cannot be trusted are not ok."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from inference.likelihoods.holders.statistics import HolderStatistics, exact
from inference.published import NAMES, method_named
from inference.published.base import Run
from inference.published.conjugate import default_prior
from inference.published.posteriors import prior_draws

IN_SDS = {"mcmc_ind", "gibbs_ss_noisy", "gibbs_ss_update"}
# Rarer by chance than once in a million, at these many draws.
FARTHEST = 0.1


def silent():
    """Statistics that say nothing: noise that nothing is heard through."""
    empty = exact([(np.zeros((1, 1)), np.zeros(1))])
    return HolderStatistics(empty.sums, np.full((2, 2), 1e6), np.ones(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bayes_fixeds_fast", "mcmc_fixeds"])
def test_draws_from_uninformative_statistics_follow_prior(name):
    method, prior = method_named(name), default_prior(1, 1)
    drawn = method.draw(silent(), prior, Run(1, 200, 500, thin=2)).sites
    theta, _ = prior_draws(method, prior, 2)
    found = stats.ks_2samp(drawn["theta"].ravel(), theta.ravel())
    assert found.statistic < FARTHEST, found
    other = np.random.default_rng(1).normal(0, 1, 4000)
    assert (stats.ks_2samp(theta.ravel(), other).statistic > FARTHEST) == method.in_sds


def test_each_method_states_its_form_of_prior():
    for name in NAMES:
        method = method_named(name)
        assert method.in_sds == (name in IN_SDS), name
        assert (method.fixed_variance is not None) == (name == "bayes_fixeds_fast"), name
