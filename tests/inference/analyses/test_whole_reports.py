"""Features of simulated reports have the joint frequencies that enumeration of all reports gives."""

from itertools import product

import numpy as np
import pytest

from inference.analyses.whole_reports import Truths

OUTCOME = np.asarray([[[0.5, 0.2, 0.2], [0.2, 0.5, 0.2]]])
PREDICTOR = np.asarray([[[0.5, 0.3], [0.3, 0.5]]])
SHARES, LAWS = np.asarray([[0.7, 0.3]]), np.asarray([[[0.6, 0.4], [0.1, 0.9]]])
TRUTHS = Truths(SHARES, LAWS, OUTCOME, PREDICTOR)
ALONE = Truths(SHARES, LAWS, OUTCOME / OUTCOME.sum(-1, keepdims=True), PREDICTOR)


def every_report(chances, exclusive):
    """(report, its chance) of one answer."""
    if exclusive:
        return [(row, chance) for row, chance in zip(np.eye(len(chances)), chances, strict=True)]
    return [
        (np.asarray(bits, float), np.prod(np.where(bits, chances, 1 - chances)))
        for bits in product((0, 1), repeat=len(chances))
    ]


def moments(truths, exclusive):
    """Mean and covariance of what shows in one report, over all truths and all reports."""
    mean, square = 0.0, 0.0
    for combination, answer in product(range(2), range(2)):
        weight = truths.shares[0, combination] * truths.outcome[0, combination, answer]
        reports = product(
            every_report(truths.of_outcome[0, answer], exclusive[0]),
            every_report(truths.of_predictor[0, combination], exclusive[1]),
        )
        for (first, chance), (second, other) in reports:
            shown = np.outer(first, second).ravel()
            mean = mean + weight * chance * other * shown
            square = square + weight * chance * other * np.outer(shown, shown)
    return mean, square - np.outer(mean, mean)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("truths", "exclusive", "people"),
    # The second has more people than are drawn one by one.
    [(TRUTHS, (False, False), 50), (TRUTHS, (False, True), 60_000), (ALONE, (True, False), 50)],
)
def test_moments_of_simulated_features_match_enumeration(truths, exclusive, people):
    if exclusive[1]:
        own = PREDICTOR / PREDICTOR.sum(-1, keepdims=True)
        truths = Truths(SHARES, LAWS, OUTCOME, own)
    mean, covariance = moments(truths, exclusive)
    expected = truths.kinds()[0]
    assert expected[0] == pytest.approx(mean, abs=1e-12)
    random, cell, size = np.random.default_rng(20261122), np.zeros(1, int), np.asarray([people])
    surveys = 6_000 if people == 50 else 400
    draws = np.stack(
        [truths.drawn((0, 0), exclusive, cell, size, expected, random)[0] for _ in range(surveys)]
    )
    of_one = np.sqrt(np.diag(covariance) / people)
    # Of six features each, at 5 sds: a false alarm in 50,000 such tests.
    assert np.abs(draws.mean(axis=0) / people - mean).max() < 5 * of_one.max() / np.sqrt(surveys)
    found = np.cov(draws.T) / people
    spread = np.sqrt((np.outer(np.diag(covariance), np.diag(covariance)) + covariance**2) / surveys)
    # Bits of 50 people have heavier tails than a normal law's.
    assert np.abs(found - covariance).max() < 6 * spread.max()
    # Bits drawn one by one would miss that those of one report go together.
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() > 9 * spread.max() or surveys == 400
