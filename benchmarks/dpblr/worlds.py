"""Tables drawn from the authors' prior, and what a holder releases of them.

One feature and an intercept; (θ, σ²) normal-inverse-gamma, (μ, τ²) normal-inverse-Wishart, as in the public
code.
"""

from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.ddplr.constants import right_sigma
from inference.likelihoods.holders import HolderStatistics
from inference.published.conjugate import ConjugatePrior
from ldp_client.mechanisms.tables.sensitivities import box_distance

Matrix = NDArray[np.float64]
# published: Laplace noise as wide as the table's own ranges make it, which is not private, by the authors'
# count of entries. The others are private for records within BOUNDS of (1, x, y), one exchanged for another.
Noise = Literal["published", "laplace", "gaussian"]
BOUNDS = np.array([1.0, 1.0, 5.0])
DELTA = 1e-5
PRIOR = ConjugatePrior(
    np.zeros(2),
    38.0 * np.eye(2),
    np.float64(20.0),
    np.float64(0.5),
    np.eye(1),
    np.float64(50.0),
    np.zeros(1),
    np.float64(1.0),
)


sigma = lru_cache(right_sigma)


class World(NamedTuple):
    """One simulated table with what made it: theta (2,), variance; rows u = (1, x, y) (n, 3)."""

    theta: Matrix
    variance: float
    rows: Matrix


class Release(NamedTuple):
    """exact; noisy: at ε; halved: at ε/2 beside fourth moments at ε/2."""

    exact: HolderStatistics
    noisy: HolderStatistics
    halved: HolderStatistics


def draw_world(records: int, random: Generator) -> World:
    """Parameters from the prior, records from them, clipped to BOUNDS (which touches next to none)."""
    variance = 0.5 / random.gamma(20.0)
    theta = random.normal(size=2) * np.sqrt(38.0 * variance)
    spread = 1.0 / random.chisquare(50.0)
    x = random.normal(size=records) * np.sqrt(spread) + random.normal() * np.sqrt(spread)
    y = theta[0] + theta[1] * x + np.sqrt(variance) * random.normal(size=records)
    return World(theta, variance, np.clip(np.column_stack([np.ones(records), x, y]), -BOUNDS, BOUNDS))


def release(world: World, epsilon: float, noise: Noise, random: Generator) -> Release:
    """What the holder releases of it, in each of the ways that a method wants."""
    rows = world.rows
    clean = HolderStatistics(
        (rows.T @ rows)[None], np.zeros((3, 3)), np.array([float(len(rows))]), intercept=True
    )
    whole, half = noise_scales(rows, epsilon, noise), noise_scales(rows, epsilon / 2, noise)
    fourth = _noisy_fourth(rows, epsilon / 2, noise, random)
    return Release(clean, _noisy(clean, whole, noise, random), _noisy(clean, half, noise, random, fourth))


def noise_scales(rows: Matrix, epsilon: float, noise: Noise) -> Matrix:
    """(3, 3): each entry's Laplace scale or Gaussian sd."""
    if noise == "published":
        x, y = np.ptp(rows[:, 1]), np.ptp(rows[:, 2])
        scales = np.full((3, 3), (3 * x**2 + 2 * x + 2 * x * y + y**2) / epsilon)
    elif noise == "laplace":
        # In thousandths, as the mechanism computes it.
        distance = box_distance(*(int(1000 * bound) for bound in BOUNDS[1:]), 1, True, 1) / 1000**2
        scales = np.full((3, 3), distance / epsilon)
    else:
        # svec of v = u / BOUNDS, ‖v‖² ≤ 3: two such differ by √2 · 3 at most.
        sd = 3 * np.sqrt(2) * sigma(epsilon, DELTA)
        scales = sd * np.outer(BOUNDS, BOUNDS) / np.where(np.eye(3) > 0, 1.0, np.sqrt(2))
    scales[0, 0] = 0.0
    return scales


def _noisy(
    clean: HolderStatistics, scales: Matrix, noise: Noise, random: Generator, fourth: Matrix | None = None
) -> HolderStatistics:
    drawn = np.triu(_draw(noise, random, (3, 3)) * scales)
    law: Literal["gaussian", "laplace"] = "gaussian" if noise == "gaussian" else "laplace"
    sums = clean.sums + (drawn + np.triu(drawn, 1).T)[None]
    return HolderStatistics(sums, scales, clean.counts, law, intercept=True, fourth_moments=fourth)


def _noisy_fourth(rows: Matrix, epsilon: float, noise: Noise, random: Generator) -> Matrix:
    """(2, 2, 2, 2) noisy means of w w w w, w = (1, x): four numbers."""
    x = rows[:, 1]
    if noise == "published":
        scale = sum(np.ptp(x) ** power for power in range(5)) / epsilon
    elif noise == "laplace":
        scale = 6.0 / epsilon
    else:
        scale = np.sqrt(10.0) * sigma(epsilon, DELTA)
    powers = np.array([np.sum(x**power) for power in range(5)])
    powers[1:] += scale * _draw(noise, random, (4,))
    order = np.indices((2, 2, 2, 2)).sum(axis=0)
    return np.asarray(powers[order] / len(x))


def _draw(noise: Noise, random: Generator, shape: tuple[int, ...]) -> Matrix:
    return random.normal(size=shape) if noise == "gaussian" else random.laplace(size=shape)
