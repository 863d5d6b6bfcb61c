"""Statistical tests share one false-alarm rate: a sound implementation fails one with probability 1e-6.

Samplers draw from os.urandom and cannot be seeded, so this is the chance of a red test per check.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

FALSE_ALARM = 1e-6
FEWEST_EXPECTED = 10.0


def follows(counts: ArrayLike, probabilities: ArrayLike) -> bool:
    """Whether counts could come from the probabilities: chi-square, cells with few expected pooled."""
    counts, expected = np.asarray(counts, float), np.asarray(probabilities, float) * np.sum(counts)
    rare = expected < FEWEST_EXPECTED
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], max(np.sum(counts) - expected[~rare].sum(), 0.0))
    if expected[-1] < 1e-9:
        if observed[-1] > 0:
            return False
        observed, expected = observed[:-1], expected[:-1]
    statistic = np.sum((observed - expected) ** 2 / expected)
    return bool(stats.chi2.sf(statistic, len(observed) - 1) > FALSE_ALARM)


def share_is(successes: int, trials: int, probability: float) -> bool:
    """Whether a share of successes could have this probability: exact binomial test."""
    return bool(stats.binomtest(successes, trials, probability).pvalue > FALSE_ALARM)
