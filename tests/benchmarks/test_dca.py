"""DCA's benchmark has the authors' noise where it says published, and enough where it says right."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.dca.noise import SHARE, Budget, scale, squares_sensitivity, sums_sensitivity

FILE = np.load(Path(__file__).parents[1] / "golden" / "methods" / "dca.npz")


def golden(data: str, name: str) -> float:
    return float(FILE[f"{data}__{name}"])


def budget_of(data: str) -> Budget:
    return Budget(golden(data, "eps"), golden(data, "delta"))


@pytest.mark.parametrize("data", ["red_wine", "abalone"])
def test_published_noise_of_projected_sums_is_the_authors(data: str) -> None:
    bounds, clients = FILE[f"{data}__thresholds"], golden(data, "clients")
    rest = budget_of(data).part(1 - SHARE)
    total = scale(rest, "published") * sums_sensitivity(bounds, "published")
    assert total / np.sqrt(clients - 1) == pytest.approx(
        golden(data, "sigma_per_client__cl_noisy_ind"), rel=1e-6
    )


@pytest.mark.parametrize("data", ["red_wine", "abalone"])
def test_published_noise_of_squares_lacks_a_factor_of_the_bound(data: str) -> None:
    columns = len(FILE[f"{data}__thresholds"])
    spent, clients = budget_of(data).part(SHARE), golden(data, "clients")
    unit = scale(spent, "published") / np.sqrt(clients - 1)
    released = unit * squares_sensitivity(columns, "published")
    needed = unit * squares_sensitivity(columns, "right")
    assert released == pytest.approx(golden(data, "sigma_per_client_var_released"), rel=1e-6)
    assert needed == pytest.approx(golden(data, "sigma_per_client_var_with_sensitivity_of_squares"), rel=1e-6)


@pytest.mark.parametrize("columns", [2, 3, 4, 5])
def test_right_sensitivity_bounds_distance_of_records(columns: int) -> None:
    random = np.random.default_rng(columns)
    bounds = random.uniform(0.3, 2.0, columns)
    released = np.triu(np.ones((columns, columns))) > 0
    released[-1, -1] = False
    corners = random.choice([-1.0, 0.0, 1.0], (2, 20_000, columns)) * bounds
    inner = random.uniform(-1.0, 1.0, (2, 20_000, columns)) * bounds
    worst = 0.0
    for one, other in (corners, inner):
        apart = np.einsum("ni,nj->nij", one, one) - np.einsum("ni,nj->nij", other, other)
        worst = max(worst, float(np.sqrt((apart[:, released] ** 2).sum(axis=1)).max()))
    right = sums_sensitivity(bounds, "right")
    assert worst <= right * (1 + 1e-12)
    assert worst > 0.8 * right
    assert right <= sums_sensitivity(bounds, "published")


def test_equal_bounds_reach_right_sensitivity() -> None:
    # METHODS 1.4: 4, 16, 36 for d = 1, 3, 5; eq. 18 has 5, 27, 65.
    for features, right, published in ((1, 4, 5), (3, 16, 27), (5, 36, 65)):
        bounds = np.ones(features + 1)
        assert sums_sensitivity(bounds, "right") ** 2 == pytest.approx(right)
        assert sums_sensitivity(bounds, "published") ** 2 == pytest.approx(published)
