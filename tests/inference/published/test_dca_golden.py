"""projected_blr is exactly what DCA's authors compute from the same noisy sums."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest

from benchmarks.papers.noisy_as_exact import posterior
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
