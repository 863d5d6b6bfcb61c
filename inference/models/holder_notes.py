"""What the normal approximation of a holder's sums leaves out, and when a reader must know."""

from __future__ import annotations

import numpy as np

from inference.likelihoods.holders.statistics import HolderStatistics, Matrix
from inference.models.clipping import NOISE_SDS, Moments, clipping_notes
from inference.models.holder_start import mean_and_covariance
from inference.models.holders import Rows
from schemas import Question

# With so many rows, errors were 1.06 times the stated sd: two features, almost no noise.
MANY_ROWS = 100


def clipped_records_notes(question: Question, statistics: HolderStatistics, rows: Rows) -> tuple[str, ...]:
    """Notes where the holders' records were clipped so often that the line is that of other values."""
    if statistics.holders == 0:
        return ()
    # A noisy count is taken as the largest that it may be: then squares are the least.
    most = rows.expected + NOISE_SDS * np.sqrt(rows.variance)
    mean, covariance = mean_and_covariance(statistics, most)
    first = int(statistics.intercept)
    scales = np.diag(statistics.noise)[first:] * (2**0.5 if statistics.law == "laplace" else 1.0)
    noise = scales * np.sqrt(statistics.holders) / most.sum()
    return clipping_notes(question, Moments(mean, np.diag(covariance) + mean**2, noise, most.sum()))


def small_holders_note(statistics: HolderStatistics, rows: Matrix) -> tuple[str, ...]:
    """A note where most holders have few rows, and less noise than their own sums' spread.

    The likelihood's mean and covariance are exact for any number of rows; but sums over few rows are skewed,
    and where noise does not hide that, stated sds are too small. Measured for records in the middle of their
    bounds, two features and almost no noise: errors of 1.5 stated sds at 5 rows, 1.2 at 20, 1.06 at 100; with
    five features up to 1.65.
    """
    first = int(statistics.intercept)
    d = statistics.features
    noise = np.diag(statistics.noise)[first : first + d]
    squares = np.diagonal(statistics.sums, axis1=1, axis2=2)[:, first : first + d]
    own = np.sqrt(2 / rows[:, None]) * np.maximum(squares, 0)
    skewed = (rows < MANY_ROWS) & np.any(own > noise, axis=1)
    if 2 * int(skewed.sum()) <= len(rows):
        return ()
    return (
        f"most holders have fewer than {MANY_ROWS} rows and little noise: their sums are skewed, and "
        "intervals may be too narrow: errors of 1.5 times the stated sd were measured at 5 rows, 1.2 at 20, "
        "with two features, and larger ones with more",
    )
