"""adaSSP's estimates: as DDPLR's code releases its statistics, and from right ones."""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from benchmarks.ddplr.constants import Bounds, cross_noise, published_sigma
from benchmarks.ddplr.releases import Setting, releases
from benchmarks.papers import ada_ssp
from inference.likelihoods.holders.statistics import exact

Matrix = NDArray[np.float64]


def ridge_points(setting: Setting) -> list[Matrix]:
    """Published: a third of ε each for S, z and the smallest eigenvalue. Right: that is read off S."""
    if setting.constants == "right":
        every = releases(setting, cross_noise)
        return [ada_ssp.estimate(one.gram, one.cross, ada_ssp.ridges(one)) for one in every]
    epsilon, delta = setting.epsilon / 3, setting.table.delta / 3
    every = releases(setting, lambda bounds, d, _budget, _constants: third_noise(bounds, d, epsilon, delta))
    truth = exact(setting.table.split(setting.holders))
    smallest = np.linalg.eigvalsh(truth.gram)[:, 0]
    random = np.random.default_rng(setting.seed + 1)
    found = []
    for one in every:
        ridges = published_ridges(smallest, one.columns, setting, random)
        found.append(ada_ssp.estimate(one.gram, one.cross, ridges))
    return found


def third_noise(bounds: Bounds, d: int, epsilon: float, delta: float) -> Matrix:
    """Sds of the released code's noise on S and on z for adaSSP."""
    scale = np.append(np.full(d, bounds.x), bounds.y)
    noise = published_sigma(epsilon, delta) * bounds.x * np.tile(scale, (d + 1, 1))
    noise = np.maximum(np.triu(noise), np.triu(noise).T)
    noise[-1, -1] = np.inf
    return noise


def published_ridges(smallest: Matrix, d: int, setting: Setting, random: np.random.Generator) -> Matrix:
    """Appendix C.2's λ_j from a private release of S_j's smallest eigenvalue."""
    many = log(6 / setting.table.delta)
    sd = sqrt(many) * setting.table.bounds.x**2 / (setting.epsilon / 3)
    seen = np.maximum(smallest + sd * random.normal(size=len(smallest)) - sqrt(many) * sd, 0)
    return np.maximum(sd * sqrt(d * log(2 * d**2 / ada_ssp.RISK)) - seen, 0)
