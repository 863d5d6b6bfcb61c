"""DDPLR's experiments rest on the right constants, and run on a tiny case."""

from math import sqrt

import numpy as np
import pytest

from benchmarks.ddplr import constants
from benchmarks.ddplr.constants import Bounds
from benchmarks.ddplr.releases import Setting, Table, paper_prior, releases

RANDOM = np.random.default_rng(20261123)


@pytest.mark.parametrize(
    ("epsilon", "published", "right"),
    [(0.1, 5.04, 24.51), (0.5, 2.15, 5.89), (1, 1.49, 3.19), (2, 1.03, 1.73)],
)
def test_noise_of_the_analytic_gaussian_mechanism(epsilon, published, right):
    assert constants.published_sigma(epsilon, 1e-4) == pytest.approx(published, abs=0.006)
    assert constants.right_sigma(epsilon, 1e-4) == pytest.approx(right, abs=0.006)


def records(bounds, many):
    """Extreme records (many, 3): x of the largest norm, y at its bound or anywhere."""
    x = RANDOM.normal(size=(many, 2))
    x *= bounds.x / np.linalg.norm(x, axis=1, keepdims=True) * RANDOM.choice([1, 1, 0], (many, 1))
    return np.column_stack([x, bounds.y * RANDOM.choice([-1.0, -0.5, 0.3, 1.0], many)])


@pytest.mark.parametrize("bounds", [Bounds(1, 1), Bounds(1, 2), Bounds(2, 0.5)])
def test_right_noise_covers_every_exchange_of_records_and_published_does_not(bounds):
    first, second = records(bounds, 20_000), records(bounds, 20_000)
    apart = first[:, :, None] * first[:, None] - second[:, :, None] * second[:, None]
    upper = np.triu(np.ones((3, 3)))
    budget = 1.0, 1e-4
    for noise_of in (constants.cross_noise, constants.squares_noise, constants.svec_noise):
        noise = noise_of(bounds, 2, budget, "right")
        worst = np.sqrt((upper * (apart / noise) ** 2).sum((1, 2)).max()) * constants.right_sigma(*budget)
        assert 0.9 < worst <= 1 + 1e-9
    published = constants.cross_noise(bounds, 2, budget, "published")
    worst = np.sqrt((upper * (apart / published) ** 2).sum((1, 2)).max()) * constants.right_sigma(*budget)
    assert worst > 2


def test_releases_hold_all_records_and_the_stated_noise():
    random = np.random.default_rng(1)
    table = Table(random.normal(size=(600, 2)), random.normal(size=600))
    every = releases(Setting(table, 3, 1.0, "right", paper_prior(np.eye(2)), runs=400), constants.svec_noise)
    truth = table.x.T @ table.x
    found = np.stack([one.sums.sum(0)[:2, :2] for one in every])
    sd = sqrt(3) * every[0].noise[:2, :2]
    assert (found.mean(0) - truth) / sd == pytest.approx(0, abs=5 / np.sqrt(400))
    assert found.std(0) / sd == pytest.approx(1, abs=0.2)
    assert sum(one.counts.sum() for one in every) == 400 * 600
