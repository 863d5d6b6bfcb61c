"""Methods of DPBLR and DCA reject unsuitable statistics and run on suitable ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.papers import METHODS
from inference.likelihoods.holders.statistics import HolderStatistics, exact
from inference.published import method_named
from inference.published.base import Run
from inference.published.conjugate import default_prior

NOISY = ("gibbs_ss_noisy", "gibbs_ss_prior", "gibbs_ss_update", "mcmc_ind")


def tables() -> list[tuple[np.ndarray, np.ndarray]]:
    """Two holders of 15 records of two features; y = x₀ − x₁/2 + noise."""
    random = np.random.default_rng(1)
    found = []
    for _ in range(2):
        x = random.uniform(-0.7, 0.7, (15, 2))
        found.append((x, x @ [1.0, -0.5] + random.normal(0, 0.1, 15)))
    return found


def released(intercept: bool = False) -> HolderStatistics:
    """Noisy, with fourth moments, and as indefinite as noise makes them."""
    clean, random = exact(tables(), intercept), np.random.default_rng(2)
    noise = np.ones_like(clean.noise)
    noise[0, 0] = float(not intercept)
    added = random.laplace(size=clean.sums.shape) * noise
    fourth = np.full((clean.columns,) * 4, 0.1)
    fourth.flat[0] = 1.0
    sums = clean.sums + np.triu(added) + np.triu(added, 1).swapaxes(1, 2)
    return replace(clean, sums=sums, noise=noise, law="laplace", fourth_moments=fourth)


def unreleased(statistics: HolderStatistics, i: int, j: int) -> HolderStatistics:
    """Without the entry (i, j)."""
    noise, sums = statistics.noise.copy(), statistics.sums.copy()
    noise[i, j] = noise[j, i] = np.inf
    sums[:, i, j] = sums[:, j, i] = 0.0
    return replace(statistics, noise=noise, sums=sums)


@pytest.mark.parametrize("name", NOISY)
def test_noise_aware_methods_reject_unsuitable_statistics(name: str) -> None:
    refuses, noisy = method_named(name).refuses, released()
    assert refuses(noisy) == ""
    assert refuses(unreleased(noisy, 2, 2)) == ""
    assert "statistics with noise" in refuses(replace(noisy, noise=np.zeros((3, 3))))
    assert "number" in refuses(replace(noisy, count_sd=3.0))
    assert "averages" in refuses(replace(noisy, average=10))
    assert "XᵀX" in refuses(unreleased(noisy, 0, 1))


def test_each_method_rejects_its_own_unsuitable_statistics() -> None:
    noisy = released()
    assert "exact" in METHODS["non_private"].refuses(noisy)
    assert "yᵀy" in METHODS["naive"].refuses(unreleased(noisy, 2, 2))
    assert "XᵀX" in METHODS["projected_blr"].refuses(unreleased(noisy, 0, 1))
    assert METHODS["projected_blr"].refuses(replace(unreleased(noisy, 2, 2), count_sd=3.0)) == ""
    assert "fourth" in method_named("gibbs_ss_noisy").refuses(replace(noisy, fourth_moments=None))
    assert "3000 records" in method_named("mcmc_ind").refuses(replace(noisy, counts=np.full(2, 1501.0)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "intercept"),
    [("naive", True), ("projected_blr", False), ("gibbs_ss_noisy", False), ("gibbs_ss_prior", False)],
)
def test_draws_of_every_method_have_expected_shapes(name: str, intercept: bool) -> None:
    statistics = released(intercept)
    method = METHODS.get(name) or method_named(name)
    drawn = method.draw(statistics, default_prior(2 + intercept, 2), Run(1, 5, 20, 3))
    assert drawn.sites["theta"].shape == (3, 20, 2 + intercept)
    assert drawn.sites["variance"].shape == (3, 20)
    assert all(np.isfinite(values).all() for values in drawn.sites.values())


@pytest.mark.slow
def test_non_private_is_the_conjugate_posterior() -> None:
    statistics, prior = exact(tables(), intercept=True), default_prior(3, 2)
    drawn = METHODS["non_private"].draw(statistics, prior, Run(1, kept=4000))
    sums = statistics.sums.sum(axis=0)
    precision = sums[:3, :3] + np.eye(3)
    mean = np.linalg.solve(precision, sums[:3, 3])
    theta = drawn.sites["theta"].reshape(-1, 3)
    assert np.all(np.abs(theta.mean(axis=0) - mean) < 5 * theta.std(axis=0) / np.sqrt(len(theta)))
    rate = prior.rate + (sums[3, 3] - mean @ precision @ mean) / 2
    variance = drawn.sites["variance"].ravel()
    expected = rate / (prior.shape + 15 - 1)
    assert abs(variance.mean() - expected) < 5 * variance.std() / np.sqrt(len(variance))
