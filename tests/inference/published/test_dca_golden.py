"""projected_blr is exactly what DCA's authors compute from the same noisy sums."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from benchmarks.papers import METHODS
from benchmarks.papers.noisy_as_exact import posterior
from inference.likelihoods.holders.statistics import HolderStatistics
from inference.published.base import Run
from inference.published.conjugate import ConjugatePrior

FILE = np.load(Path(__file__).parents[2] / "golden" / "methods" / "dca.npz")
VARIANTS = [
    (data, key.split("__")[2])
    for data in ("red_wine", "abalone")
    for key in FILE.files
    if key.startswith(f"{data}__beta")
]


def sums_of(data: str, variant: str) -> np.ndarray:
    """Σ uuᵀ with nothing for y², which is not released."""
    gram, cross = FILE[f"{data}__XX__{variant}"], FILE[f"{data}__Xy__{variant}"]
    return np.block([[gram, cross[:, None]], [cross[None], np.zeros((1, 1))]])


def unit_prior(columns: int) -> ConjugatePrior:
    """The authors' λ = λ₀ = 1."""
    return ConjugatePrior(
        np.zeros(columns), np.eye(columns), 2.0, 1.0, np.eye(columns), columns + 2.0, np.zeros(columns), 1.0
    )


def mean_of(sums: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(posterior(sums, unit_prior(len(sums) - 1))[0])


@pytest.mark.parametrize(("data", "variant"), VARIANTS)
def test_coefficients_match_the_authors(data: str, variant: str) -> None:
    assert np.allclose(
        mean_of(sums_of(data, variant)), FILE[f"{data}__beta__{variant}"], rtol=1e-7, atol=1e-9
    )


@pytest.mark.slow
def test_draws_match_closed_form_mean_and_covariance() -> None:
    sums = sums_of("abalone", "cl_noisy")
    noise = np.full(sums.shape, float(FILE["abalone__sigma_per_client__cl_noisy"]) * np.sqrt(3000))
    noise[-1, -1] = np.inf
    statistics = HolderStatistics(np.stack([sums / 3] * 3), noise, np.full(3, 1000.0))
    method, prior = METHODS["projected_blr"], unit_prior(len(sums) - 1)
    assert method.refuses(statistics) == ""
    theta = method.draw(statistics, prior, Run(1, kept=5000)).sites["theta"].reshape(-1, len(sums) - 1)
    with jax.enable_x64(True):
        mean, lower, _ = (np.asarray(part) for part in posterior(sums, prior))
    white = (theta - mean) @ lower
    assert np.abs(white.mean(axis=0)).max() < 5 / np.sqrt(len(theta))
    assert np.abs(white.T @ white / len(theta) - np.eye(len(mean))).max() < 5 * np.sqrt(2 / len(theta))
