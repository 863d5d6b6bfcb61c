"""A study's linear regression for data holders: the study's priors with the holders' likelihood.

Notes warn if the error of the normal approximation of a holder's sums can matter.
"""

import numpy as np

from inference.likelihoods.holders import HolderStatistics, Matrix
from inference.models.base import Model
from inference.models.clipping import clipping_notes
from inference.models.record_sums import Rows, clipped_moments, refusal, rows_of, sums_model
from ldp_client.documents.errors import InputError
from schemas import Question

# With this many rows, errors were 1.06 times the stated sd (two features, almost no noise).
MANY_ROWS = 100


ONE_SD = (
    "the response is taken to vary by one sd whatever the features are, which these sums cannot confirm: if "
    "its spread depends on a feature, such as stays that vary more on one ward, that coefficient's interval "
    "may be too short"
)


def clipped_records_notes(question: Question, statistics: HolderStatistics, rows: Rows) -> tuple[str, ...]:
    """Return notes if so many of the holders' records were clipped that the line describes other values."""
    return clipping_notes(question, clipped_moments(statistics, rows)) if statistics.holders else ()


def small_holders_note(statistics: HolderStatistics, rows: Matrix) -> tuple[str, ...]:
    """Return a note if most holders have few rows, and less noise than their own sums' spread.

    The likelihood's mean and covariance are exact for any number of rows. But sums over few rows are skewed,
    and stated sds are too small if noise does not hide that. Measured with records in the middle of their
    bounds, two features and almost no noise: errors of 1.5 stated sds at 5 rows, 1.2 at 20, 1.06 at 100. With
    five features: up to 1.65.
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
        "intervals may be too narrow. With two features, errors were 1.5 times the stated sd at 5 rows and "
        "1.2 times at 20; more features increase them",
    )


def holder_regression(question: Question, statistics: HolderStatistics) -> Model:
    """Return the model y | x ~ Normal(intercept + coefficients·x, sd), x ~ Normal(mean, covariance).

    Raises InputError for statistics or priors without a likelihood.
    """
    why = refusal(statistics)
    if why:
        raise InputError(
            f"{question.id}: marginal does not take these statistics: {why}", code="fit.marginal_statistics"
        )
    if not statistics.intercept and "feature_mean" in question.model.prior:
        raise InputError(
            f"{question.id}: a prior of feature_mean needs statistics with an intercept",
            code="prior.feature_mean_without_intercept",
        )
    rows = rows_of(statistics)
    n = round(float(rows.expected.sum()) * statistics.average)
    clipped = clipped_records_notes(question, statistics, rows)
    return sums_model(
        question, statistics, n, (ONE_SD, *clipped, *small_holders_note(statistics, rows.expected))
    )
