"""Predictive checks find misfit, and seldom reject a right law; promise 18 has wrong laws that they find."""

import numpy as np
import pytest
from scipy import stats

from inference.histogram import Histogram
from inference.predictive import MISFIT, Predictive, is_far
from inference.results.verdict import FALSE_ALARM, FIT, Finding

EDGES = np.linspace(0, 1, 129)
ANSWERS = np.linspace(0, 1, 129)


def channel(epsilon):
    """Probabilities (answers, cells) of Laplace reports: below the bounds, in 128 cells, and above."""
    below = stats.laplace.cdf(EDGES, ANSWERS[:, None], 1 / epsilon)
    ends = np.zeros((len(ANSWERS), 1))
    return np.diff(np.concatenate([ends, below, ends + 1], axis=1), axis=1)


def normal(mean, sd):
    """Clipped normal laws on the answers, (laws, answers)."""
    middles = np.concatenate([[-np.inf], (ANSWERS[1:] + ANSWERS[:-1]) / 2, [np.inf]])
    return np.diff(stats.norm.cdf(middles, np.atleast_1d(mean)[:, None], np.atleast_1d(sd)[:, None]), axis=1)


def posterior(counts, matrix, random):
    """Cells (60, cells) at draws of mean and sd, by grids that close in on the posterior."""
    centre, width = np.array([0.5, np.log(0.2)]), np.array([1.0, 2.3])
    for _ in range(7):
        grid = [middle + np.linspace(-reach, reach, 13) for middle, reach in zip(centre, width, strict=True)]
        mean, log_sd = (axis.ravel() for axis in np.meshgrid(*grid))
        density = np.log(normal(mean, np.exp(log_sd)) @ matrix) @ counts
        density += (
            stats.norm.logpdf(mean, 0.5, 0.7) + stats.gamma.logpdf(np.exp(log_sd), 2, scale=0.25) + log_sd
        )
        weight = np.exp(density - density.max())
        weight /= weight.sum()
        places = np.stack([mean, log_sd])
        centre = places @ weight
        spread = np.sqrt(weight @ (places - centre[:, None]).T ** 2)
        width = np.clip(4 * spread, 0.35 * width, 1.2 * width)
    chosen = random.choice(len(mean), 60, p=weight)
    step = np.array([axis[1] - axis[0] for axis in grid])
    moved = places[:, chosen] + step[:, None] * random.uniform(-0.5, 0.5, (2, 60))
    return normal(moved[0], np.exp(moved[1])) @ matrix


@pytest.mark.slow
def test_right_law_is_rejected_at_most_at_stated_rate():
    """p-values at truths from the prior are no smaller than uniform ones."""
    random, matrix, found = np.random.default_rng(4), channel(4), []
    for _ in range(100):
        expected = normal(random.normal(0.5, 0.35), random.gamma(2, 0.12) + 0.02)[0] @ matrix
        counts = random.multinomial(20_000, expected / expected.sum()).astype(float)
        found.append(Histogram(counts, posterior(counts, matrix, random), matrix[::2], 2).p_value())
    for level in (0.05, 0.01, FALSE_ALARM):
        assert stats.binom.sf(np.sum(np.asarray(found) < level) - 1, len(found), level) > 1e-3


def test_predictive_check_reports_surprise_and_misfit():
    random = np.random.default_rng(1)
    simulated = random.normal(0.5, 0.01, (60, 10))
    for share, far, words in (
        (0.5, False, "the prior allows"),
        (0.9, True, "the reports surprise the prior"),
    ):
        observed = np.full(10, share)
        assert is_far(simulated, observed) == far
        against = (Finding(FIT, MISFIT),) if far else ()
        said = Predictive(simulated, simulated, observed, against).in_words()
        assert words in said
        assert ("the model does not fit" in said) == far
