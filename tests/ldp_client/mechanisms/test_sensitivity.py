"""Sensitivities against numerical optimisation over pairs of records."""

from math import sqrt

import numpy as np
import pytest
from scipy.optimize import minimize

from ldp_client.core.noise_levels import outer_product_sensitivity

CASES = [
    # norm, response, var_xx, var_xy, var_yy
    (1.0, 1.0, 1.0, 1.0, 1.0),
    (0.1, 1.0, 1.0, 1.0, 1.0),
    (1.0, 2.0, 1.0, 1.0, None),
    (0.3, 1.0, 4.0, 0.5, None),
    (0.2, 1.5, 3.0, 2.0, 0.3),
    (2.0, 0.4, 1.0, 0.7, 2.0),
    (0.5, 1.0, 1.0, 4.0, 0.05),
]


def joint_sensitivity(norm, response, var_xx, var_xy, var_yy=None):
    """Whitened L2 sensitivity of (svec xxᵀ, xy, y²), noise variance 1; without y² if var_yy is None.

    The supremum over all pairs of records: the largest of three cases, of which LDPBI Lemma 3.1
    states the first. svec is the upper triangle with off-diagonal entries times √2, so that it keeps the
    Frobenius norm. The built-in mechanism releases svec(vvᵀ), whose bound is simpler.
    """
    r2, t2 = norm * norm, response * response
    v1, v2 = var_xx, var_xy
    square_noise = 0.0 if var_yy is None else 1.0 / var_yy
    same_size = 2 * r2 * r2 / v1 + r2 * t2 / v2 + t2 * t2 * square_noise
    if t2 * v1 <= 2 * v2 * r2:
        opposite = 2 * r2 * r2 / v1 + 2 * r2 * t2 / v2 + t2 * t2 * v1 / (2 * v2 * v2)
    else:
        opposite = 4 * r2 * t2 / v2
    return sqrt(max(same_size, opposite, _unequal_responses(r2, response, v1, v2, var_yy)))


def _unequal_responses(r2, response, v1, v2, v3):
    """The case of two responses of different size; 0 where it does not arise."""
    if v3 is None:
        return 0.0
    slope = r2 / v2
    discriminant = response * response - 2 * slope * v3
    if discriminant <= 0:
        return 0.0
    w = (response - sqrt(discriminant)) / 2
    if w * response * v1 < 2 * v2 * r2:
        return 0.0
    return (response + w) ** 2 * (slope + (response - w) ** 2 / v3)


def distance(flat, case):
    """Whitened distance of the statistics of two records, each pulled back into its bounds."""
    norm, response, v1, v2, v3 = case
    first, second = flat.reshape(2, -1)

    def statistic(record):
        x, y = record[:-1], np.clip(record[-1], -response, response)
        length = np.linalg.norm(x)
        x = x * norm / length if length > norm else x
        return np.outer(x, x), x * y, y * y

    (xx, xy, yy), (uu, uw, ww) = statistic(first), statistic(second)
    square = np.sum((xx - uu) ** 2) / v1 + np.sum((xy - uw) ** 2) / v2
    return np.sqrt(square + ((yy - ww) ** 2 / v3 if v3 else 0.0))


def largest_distance(case, d=2, starts=120):
    random = np.random.default_rng(1)
    best = 0.0
    for _ in range(starts):
        start = random.normal(size=2 * (d + 1)) * np.tile([*[case[0]] * d, case[1]], 2) * 2
        found = minimize(
            lambda z: -distance(z, case), start, method="Nelder-Mead", options={"fatol": 1e-12, "xatol": 1e-9}
        )
        best = max(best, -found.fun)
    return best


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_joint_sensitivity_is_the_supremum(case):
    assert joint_sensitivity(*case) == pytest.approx(largest_distance(case), rel=1e-5)


def test_the_published_lemma_alone_is_too_small():
    """LDPBI Lemma 3.1 at R = 0.1, T = 1 gives 0.515 for the square, the truth is 1.010."""
    assert joint_sensitivity(0.1, 1.0, 1.0, 1.0, 1.0) ** 2 == pytest.approx(1.010, abs=1e-3)
    assert joint_sensitivity(1.0, 1.0, 1.0, 1.0, 1.0) == pytest.approx(3 / np.sqrt(2))


@pytest.mark.parametrize("size", [1, 2, 10**6, 10**13 + 7])
def test_outer_product_sensitivity_is_reached_by_a_right_angle(size):
    """For v and w at right angles with ‖v‖² = ‖w‖² = s, ‖vvᵀ − wwᵀ‖² = 2s²."""
    bound = outer_product_sensitivity(size)
    assert (bound - 1) ** 2 <= 2 * size * size < bound * bound
