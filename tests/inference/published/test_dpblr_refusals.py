"""Methods of DPBLR and DCA reject unsuitable statistics and run on suitable ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from inference.likelihoods.holders.statistics import HolderStatistics, exact
from inference.published import method_named

NOISY = ("gibbs_ss_noisy", "gibbs_ss_update", "mcmc_ind")


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
