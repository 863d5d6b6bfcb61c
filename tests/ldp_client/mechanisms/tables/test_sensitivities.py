"""Sensitivities of tables against numerical search over pairs of tables."""

import pytest

from ldp_client.mechanisms.tables.powers import power_distance
from ldp_client.mechanisms.tables.sensitivities import ddplr_sensitivity, svec_sensitivity
from ldp_client.mechanisms.tables.statistics import l1_distance
from tests.ldp_client.mechanisms.tables import asking

UNIT = 1 << 20
# features, norm, intercept, average
SHAPES = [
    (2, 1.0, True, 1),
    (5, 2.0, True, 1),
    (3, 0.3, False, 1),
    (3, 0.5, True, 5),
    (3, 1.5, False, 10),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_distance_of_weighted_products(shape):
    features, norm, intercept, average = shape
    constant = int(norm / 2**0.5 * UNIT) if intercept else 0
    square_norm = int(1.5 * norm * norm * UNIT * UNIT)
    found, _ = asking.largest(asking.svec_distance(norm, intercept, average), features, norm)
    bound = svec_sensitivity(constant, square_norm, average) / UNIT**2
    assert bound * 0.997 <= found <= bound * (1 + 1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_distance_of_ddplr_statistics(shape):
    features, norm, intercept, average = shape
    found, _ = asking.largest(asking.ddplr_distance(intercept, average), features, norm)
    bound = ddplr_sensitivity(int(norm * UNIT), UNIT, intercept, average) / UNIT**2
    assert bound * (0.8 if norm > 1 else 0.997) <= found <= bound * (1 + 1e-5)


@pytest.mark.parametrize(
    ("shape", "tight"),
    [
        *[(shape, 0.94) for shape in SHAPES if shape[0] < 5],
        ((3, 3**0.5, True, 1), 0.999),
        ((5, 2.0, True, 1), 0.9),
    ],
)
def test_the_distance_of_laplace_statistics(shape, tight):
    """The bounds are the truth where only the box binds, and within 6 % where the norm does."""
    features, norm, intercept, average = shape
    found, _ = asking.largest(asking.laplace_distance(intercept, average), features, norm)
    bound = l1_distance(int(norm * UNIT), UNIT, features, intercept, average) / UNIT**2
    assert bound * tight <= found <= bound * (1 + 1e-5)


@pytest.mark.parametrize(("features", "norm", "intercept"), [(1, 1.0, False), (2, 1.0, True), (3, 0.5, True)])
def test_the_distance_of_fourth_moments(features, norm, intercept):
    """Two bounds of two orders, added: not sharp, never below."""
    found, _ = asking.largest(asking.powers_distance(intercept), features, norm)
    bound = power_distance(round(norm * UNIT), features, intercept) / UNIT**4
    assert 0.5 * bound <= found <= bound * (1 + 1e-5)
