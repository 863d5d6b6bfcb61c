"""Methods reject statistics that they are not for, state their prior, and repeat DCA's results."""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy import stats

from benchmarks.papers import METHODS
from benchmarks.papers.noisy_as_exact import posterior
from inference.likelihoods.holders import HolderStatistics, exact
from inference.published import method_named
from inference.published.base import Run
from inference.published.conjugate import ConjugatePrior, default_prior
from inference.published.posteriors import prior_draws

# Rarer by chance than once in a million, at these many draws.
FARTHEST = 0.1
RANDOM = np.random.default_rng(20261122)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bayes_fixeds_fast", "mcmc_fixeds"])
def test_draws_from_uninformative_statistics_follow_prior(name):
    method, prior = method_named(name), default_prior(1, 1)
    empty = exact([(np.zeros((1, 1)), np.zeros(1))])
    silent = HolderStatistics(empty.sums, np.full((2, 2), 1e6), np.ones(1))
    drawn = method.draw(silent, prior, Run(1, 200, 500, thin=2)).sites
    theta, _ = prior_draws(method, prior, 2)
    found = stats.ks_2samp(drawn["theta"].ravel(), theta.ravel())
    assert found.statistic < FARTHEST, found
    other = np.random.default_rng(1).normal(0, 1, 4000)
    assert (stats.ks_2samp(theta.ravel(), other).statistic > FARTHEST) == method.in_sds


def noisy(intercept=False):
    found = exact([(RANDOM.normal(size=(50, 3)), RANDOM.normal(size=50)) for _ in range(2)], intercept)
    return replace(found, noise=np.ones(found.noise.shape))


DDPLR = ("ada_ssp", "bayes_fixeds_fast", "mcmc_bs", "mcmc_fixeds", "mcmc_normalx")
DPBLR = ("gibbs_ss_noisy", "gibbs_ss_update", "mcmc_ind")


def unreleased(statistics, i, j):
    noise = statistics.noise.copy()
    noise[i, j] = noise[j, i] = np.inf
    return replace(statistics, noise=noise)


@pytest.mark.parametrize("name", [*DDPLR, *DPBLR])
def test_methods_reject_unsuitable_statistics(name):
    method, fine = METHODS.get(name) or method_named(name), noisy()
    fine = replace(fine, fourth_moments=np.full((3,) * 4, 0.1) if name in DPBLR else None)
    refuses, no_counts = method.refuses, ("mcmc_bs", "mcmc_normalx", *DPBLR)
    assert refuses(fine) == ""
    in_laplace = "needs Gaussian noise, not laplace noise" if name in DDPLR else ""
    assert refuses(replace(fine, law="laplace")) == in_laplace
    assert "needs statistics with noise" in refuses(replace(fine, noise=fine.noise * 0))
    assert refuses(unreleased(fine, 0, -1)) == "needs all of XᵀX and Xᵀy"
    assert refuses(unreleased(fine, 0, 1)) == "needs all of XᵀX and Xᵀy"
    assert ("count_share" in refuses(replace(fine, count_sd=3.0))) == (name in no_counts)
    assert ("averages" in refuses(replace(fine, average=10))) == (name in DPBLR)
    assert ("yᵀy" in refuses(unreleased(fine, -1, -1))) == (name == "mcmc_bs")
    assert ("centred" in refuses(noisy(intercept=True))) == (name == "mcmc_bs")
    few = refuses(replace(fine, counts=np.array([50.0, 2.0])))
    assert few == ("needs at least 3 rows of every holder" if name == "mcmc_normalx" else "")
    assert ("fourth moments" in refuses(noisy())) == (name == "gibbs_ss_noisy")


FILE = np.load(Path(__file__).parents[2] / "golden" / "methods" / "dca.npz")


@pytest.mark.parametrize(
    ("data", "variant"), [key.split("__beta__") for key in FILE.files if "__beta__" in key]
)
def test_coefficients_match_the_authors(data, variant):
    # Σ uuᵀ with nothing for y², which is not released; the authors' λ = λ₀ = 1.
    gram, cross = FILE[f"{data}__XX__{variant}"], FILE[f"{data}__Xy__{variant}"]
    sums = np.block([[gram, cross[:, None]], [cross[None], np.zeros((1, 1))]])
    none, unit = np.zeros(len(cross)), np.eye(len(cross))
    prior = ConjugatePrior(none, unit, 2.0, 1.0, unit, len(cross) + 2.0, none, 1.0)
    with jax.enable_x64(True):
        found = np.asarray(posterior(sums, prior)[0])
    assert np.allclose(found, FILE[f"{data}__beta__{variant}"], rtol=1e-7, atol=1e-9)
