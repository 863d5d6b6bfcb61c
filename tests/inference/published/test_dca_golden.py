"""projected_blr is exactly what DCA's authors compute from the same noisy sums."""

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


@pytest.mark.parametrize(("data", "variant"), VARIANTS)
def test_coefficients_match_the_authors(data: str, variant: str) -> None:
    # Σ uuᵀ with nothing for y², which is not released; the authors' λ = λ₀ = 1.
    gram, cross = FILE[f"{data}__XX__{variant}"], FILE[f"{data}__Xy__{variant}"]
    sums = np.block([[gram, cross[:, None]], [cross[None], np.zeros((1, 1))]])
    none, unit = np.zeros(len(cross)), np.eye(len(cross))
    prior = ConjugatePrior(none, unit, 2.0, 1.0, unit, len(cross) + 2.0, none, 1.0)
    with jax.enable_x64(True):
        found = np.asarray(posterior(sums, prior)[0])
    assert np.allclose(found, FILE[f"{data}__beta__{variant}"], rtol=1e-7, atol=1e-9)
