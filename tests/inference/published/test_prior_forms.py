"""A posterior states the prior that its method used; methods that cannot be trusted are not ok."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from benchmarks.papers import METHODS
from inference import fit
from inference.likelihoods.holders.statistics import HolderStatistics, exact
from inference.published import NAMES, method_named
from inference.published.base import Run
from inference.published.conjugate import default_prior
from inference.results.page import render_page
from tests.inference.holder_tables import reports_of, study_of, tables_of

IN_SDS = {
    "naive",
    "non_private",
    "mcmc_bs",
    "mcmc_ind",
    "gibbs_ss_noisy",
    "gibbs_ss_prior",
    "gibbs_ss_update",
}
FIXED = {"projected_blr", "bayes_fixeds_fast"}
# Rarer by chance than once in a million, at these many draws.
FARTHEST = 0.1
CENTRED = {"name": "table_statistics", "epsilon": "8", "delta": "1e-6", "intercept": False}


def silent(method):
    """Statistics that say nothing: one record of zeros, or noise that nothing is heard through."""
    empty = exact([(np.zeros((1, 1)), np.zeros(1))])
    if method == "non_private":
        return HolderStatistics(empty.sums, empty.noise, np.zeros(1))
    return HolderStatistics(empty.sums, np.full((2, 2), 1e6), np.ones(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["non_private", "mcmc_bs", "bayes_fixeds_fast", "mcmc_fixeds"])
def test_draws_from_uninformative_statistics_follow_prior(name):
    method, prior = METHODS.get(name) or method_named(name), default_prior(1, 1)
    drawn = method.draw(silent(name), prior, Run(1, 200, 500, thin=2)).sites
    theta, _ = method.prior.draws(prior, 2)
    found = stats.ks_2samp(drawn["theta"].ravel(), theta.ravel())
    assert found.statistic < FARTHEST, found
    other = np.random.default_rng(1).normal(0, 1, 4000)
    assert (stats.ks_2samp(theta.ravel(), other).statistic > FARTHEST) == method.prior.in_sds


def test_each_method_states_its_form_of_prior():
    for name in (*NAMES, *METHODS):
        form = (METHODS.get(name) or method_named(name)).prior
        assert form.in_sds == (name in IN_SDS), name
        assert form.theta == (name != "ada_ssp"), name
        assert (form.fixed_variance is not None) == (name in FIXED), name


@pytest.fixture(scope="module")
def fitted():
    study = study_of(CENTRED)
    reports = reports_of(study, tables_of([200, 300]))
    names = ("gibbs_ss_prior", "bayes_fixeds_fast")
    return study, {name: fit(study, reports, method=name)["wage"] for name in names}


@pytest.mark.slow
def test_posteriors_state_their_methods_priors(fitted):
    study, found = fitted
    slope = {name: posterior.prior["coefficients"]["age"] for name, posterior in found.items()}
    scale = 2 / 12.25
    own = found["gibbs_ss_prior"]
    assert slope["gibbs_ss_prior"] == {
        "distribution": "normal",
        "loc": 0.0,
        "scale_over_sd": pytest.approx(1 / 12.25),
    }
    assert own.prior["variance"]["distribution"] == "inverse_gamma"
    # The prior's median residual sd is 0.39 of the response's bound.
    assert own.prior_sd["coefficient[age]"] == pytest.approx(0.5 * scale, rel=0.2)
    assert "coefficients[age] ~ normal(loc 0, scale_over_sd 0.08163)" in render_page(study, {"wage": own})
    fixed = found["bayes_fixeds_fast"]
    assert slope["bayes_fixeds_fast"] == {
        "distribution": "normal",
        "loc": 0.0,
        "scale": pytest.approx(scale),
    }
    assert fixed.prior["sd"] == {"distribution": "fixed", "value": pytest.approx(2 / 3)}
    assert "variance" not in fixed.prior
    assert fixed.prior_sd["sd"] == float("inf")
    assert fixed.prior_sd["coefficient[age]"] == pytest.approx(scale, rel=0.1)
    assert "sd ~ fixed(value 0.6667)" in render_page(study, {"wage": fixed})


@pytest.mark.slow
def test_a_method_that_fixes_the_variance_is_not_ok(fitted):
    diagnostics = fitted[1]["bayes_fixeds_fast"].diagnostics
    assert not diagnostics.ok
    assert any("does not estimate the residual sd" in reason for reason in diagnostics.reasons)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("naive", "takes the noise for data"),
        ("projected_blr", "takes the noise for data and does not estimate the residual sd"),
        ("ada_ssp", "point estimate"),
    ],
)
def test_comparison_methods_state_why_they_are_not_ok(name, said):
    tables = [(np.ones((20, 1)), np.ones(20)), (np.ones((30, 1)), np.ones(30))]
    found = exact(tables)
    statistics = HolderStatistics(found.sums, np.ones((2, 2)), found.counts)
    drawn = METHODS[name].draw(statistics, default_prior(1, 1), Run(1, 1, 10))
    assert any(said in reason for reason in drawn.reasons)
