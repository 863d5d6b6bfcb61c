"""Statistics of holders' records with noise, for tests of the published methods."""

from dataclasses import replace

import numpy as np

from inference.likelihoods.holders.statistics import exact

RANDOM = np.random.default_rng(20261122)


def noisy(holders=2, features=2, rows=50, sd=1.0, intercept=False):
    """Statistics of normal records with equal Gaussian noise on every entry."""
    tables = [(RANDOM.normal(size=(rows, features)), RANDOM.normal(size=rows)) for _ in range(holders)]
    found = exact(tables, intercept)
    noise = np.full(found.noise.shape, sd)
    errors = np.triu(RANDOM.normal(size=found.sums.shape)) * sd
    errors += np.triu(errors, 1).transpose(0, 2, 1)
    if intercept:
        noise[0, 0] = errors[:, 0, 0] = 0
    return replace(found, sums=found.sums + errors, noise=noise)
