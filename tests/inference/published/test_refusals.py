"""Methods reject statistics that they are not for."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.papers import METHODS
from inference.published import method_named
from tests.inference.published.noisy import noisy

DDPLR = ("ada_ssp", "bayes_fixeds_fast", "mcmc_bs", "mcmc_fixeds", "mcmc_normalx")
DPBLR = ("gibbs_ss_noisy", "gibbs_ss_update", "mcmc_ind")


def unreleased(statistics, i, j):
    """Without the entry (i, j)."""
    noise = statistics.noise.copy()
    noise[i, j] = noise[j, i] = np.inf
    return replace(statistics, noise=noise)


@pytest.mark.parametrize("name", [*DDPLR, *DPBLR])
def test_methods_reject_unsuitable_statistics(name):
    method, fine = METHODS.get(name) or method_named(name), noisy(features=3)
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
    assert ("centred" in refuses(noisy(features=3, intercept=True))) == (name == "mcmc_bs")
    few = refuses(replace(fine, counts=np.array([50.0, 2.0])))
    assert few == ("needs at least 3 rows of every holder" if name == "mcmc_normalx" else "")


def test_noisy_moments_must_have_been_released():
    assert "fourth moments" in method_named("gibbs_ss_noisy").refuses(noisy())
