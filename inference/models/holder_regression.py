"""A study's linear regression for data holders: the study's priors with the holders' likelihood.

Notes warn if the error of the normal approximation of a holder's sums can matter. A test shows whether
holders share one line, as their common regression assumes.
"""

from collections.abc import Mapping
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from inference.likelihoods.holders import HolderStatistics, Matrix
from inference.models.base import Model
from inference.models.clipping import clipping_notes
from inference.models.record_sums import Rows, clipped_moments, refusal, rows_of, sums_model
from inference.results.verdict import FALSE_ALARM
from inference.tail_probabilities import squares_beyond
from inference.units import RecordUnits
from ldp_client.documents.errors import InputError
from ldp_client.mechanisms.tables.base import TableMechanism
from schemas import Question
from summaries import QuestionSummary


def holder_statistics(mechanism: TableMechanism, summary: QuestionSummary) -> HolderStatistics:
    """Return each holder's noisy sums as symmetric matrices in scaled units.

    With an intercept, entry (0, 0) is the released number of records, with its noise.
    """
    assert summary.reports is not None
    constant = int(mechanism.intercept)
    size = len(mechanism.features) + 1 + constant
    found = [mechanism.entries(bytes(payload)) for payload in summary.reports]
    counts = np.asarray([count for count, _ in found], dtype=float)
    sums, noise = np.zeros((len(found), size, size)), np.full((size, size), np.inf)
    values = np.asarray([values for _, values in found]).reshape(len(found), len(mechanism.coordinates))
    for index, (i, j) in enumerate(mechanism.coordinates):
        row, column = i - 1 + constant, j - 1 + constant
        sums[:, row, column] = sums[:, column, row] = values[:, index]
        noise[row, column] = noise[column, row] = mechanism.noise_scale[index]
    if constant:
        sums[:, 0, 0], noise[0, 0] = counts, mechanism.count_noise_sd
    powers = [mechanism.power_sums(bytes(payload)) for payload in summary.reports]
    return HolderStatistics(
        sums=sums,
        noise=noise,
        counts=counts,
        law="laplace" if mechanism.law == "laplace" else "gaussian",
        intercept=mechanism.intercept,
        count_sd=mechanism.count_noise_sd,
        average=mechanism.average,
        fourth_moments=_fourth_moments(mechanism, sums, counts, powers) if mechanism.products else None,
    )


def _fourth_moments(
    mechanism: TableMechanism, sums: Matrix, counts: Matrix, powers: list[list[float]]
) -> Matrix | None:
    """Return means (q, q, q, q) over all holders' records; with the constant squared, from `sums`."""
    if not powers:
        return None
    size, constant = sums.shape[-1] - 1, int(mechanism.intercept)
    records = max(counts.sum(), 1.0)
    found = dict(zip(mechanism.products, np.sum(powers, axis=0) / records, strict=True))
    if constant:
        second = sums[:, :size, :size].sum(axis=0) / records
        second[0, 0] = 1.0
        for i, j in combinations_with_replacement(range(size), 2):
            found[tuple(index for index in (i, j) if index)] = second[i, j]
    fourth = np.empty((size,) * 4)
    for place in np.ndindex(fourth.shape):
        fourth[place] = found[tuple(sorted(i + 1 - constant for i in place if i + 1 - constant))]
    return fourth


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


# Under Laplace noise, sums of squares have no χ² law: this many are drawn instead, this many at a time.
DRAWN, AT_ONCE = 4000, 100
# Lower limit of a Gram matrix's eigenvalues, as a part of the holder's rows.
FLOOR = 1e-6


def holders_differ(
    question: Question, statistics: HolderStatistics, seed: int, draws: Mapping[str, NDArray[np.float64]]
) -> tuple[str, ...]:
    """Return reasons against one line for all holders, from a posterior's draws (chains, draws) by name.

    Each holder's Σ(y − xᵀθ)x is known up to noise of known law. If all holders share the line, it has mean
    zero and covariance sd² Σxxᵀ given the holder's features, whatever the features' distribution and its
    differences between holders. The test uses the line that fits all holders best, so that no estimate of the
    line can raise an alarm.
    """
    if statistics.holders < 2:
        return ()
    # Parameters in own units become lines in the units of the sums.
    units = RecordUnits(question)
    slopes = np.stack([draws[f"coefficient[{name}]"].ravel() for name in units.names], axis=-1)
    parts = [slopes * units.unit / units.response.unit]
    if statistics.intercept:
        centre = draws["intercept"].ravel() + slopes @ units.zero - units.response.zero
        parts.insert(0, (centre / units.response.unit)[:, None])
    line = np.concatenate([*(-part for part in parts), np.ones((len(slopes), 1))], axis=-1)
    variance = float(np.mean(np.square(draws["sd"] / units.response.unit)))
    if p_value(statistics, line.T @ line / len(line), variance, seed) >= FALSE_ALARM:
        return ()
    return (
        "holders differ: their sums are farther from one common line than sampling and noise can explain, "
        "so that slopes mix effects within holders with differences between them, and intervals are too "
        "narrow; fit each holder's report alone and compare",
    )


def p_value(statistics: HolderStatistics, second: Matrix, variance: float, seed: int) -> float:
    """Return the probability that holders sharing one line are as far apart as these.

    second: E[θθᵀ] (p, p) over a posterior, θ = (−line, 1). variance: E[sd²]. Both are in scaled units.
    """
    # 1. The sums, with the number of records filled in. Squares of the response are not used.
    rows, q = rows_of(statistics), statistics.columns
    records = rows.expected * statistics.average
    sums, noise = statistics.sums.copy(), statistics.noise_variance
    noise = np.where(np.isfinite(noise), noise, 0.0)
    if statistics.intercept:
        sums[:, 0, 0], noise[0, 0] = records, rows.variance.max() * statistics.average**2
    gram, cross = sums[:, :q, :q], sums[:, :q, q]
    # 2. The covariance of each holder's sums: of sampling, with a positive definite Gram matrix, and of Eθ
    # for the symmetric noise E.
    values, axes = np.linalg.eigh(gram)
    values = np.maximum(values, FLOOR * np.maximum(records, 1.0)[:, None])
    sampling = variance * (axes * values[:, None]) @ np.swapaxes(axes, -1, -2)
    of_noise = noise * second
    np.fill_diagonal(of_noise, noise @ np.diag(second))
    # 3. Whitened, the sums of each holder are linear in the line: least squares take the best one out.
    white = np.linalg.inv(np.linalg.cholesky(sampling + of_noise[:q, :q]))
    design = (white @ gram).reshape(-1, q)
    basis = np.linalg.qr(design)[0]
    seen = float(_left(basis, (white @ cross[..., None]).reshape(1, -1))[0])
    if statistics.law == "gaussian":
        return squares_beyond(seen, len(design) - q)
    # 4. Under Laplace noise the squares are simulated.
    random, sizes = np.random.default_rng(seed), np.sqrt(np.diag(second))
    root = np.linalg.cholesky(sampling + 1e-12 * np.eye(q))
    beyond = 0
    for _ in range(DRAWN // AT_ONCE):
        entries = random.laplace(size=(AT_ONCE, *sums.shape)) * np.sqrt(noise / 2)
        entries = np.triu(entries) + np.swapaxes(np.triu(entries, 1), -1, -2)
        of_records = root @ random.normal(size=(AT_ONCE, len(sums), q, 1))
        drawn = white @ (entries[:, :, :q] @ sizes[:, None] + of_records)
        beyond += int(np.sum(_left(basis, drawn.reshape(AT_ONCE, -1)) >= seen))
    return (1 + beyond) / (1 + DRAWN)


def _left(basis: Matrix, white: Matrix) -> Matrix:
    """Return sums of squares (…,) of white numbers (…, entries), after projecting out basis (entries, q)."""
    return np.asarray(np.sum((white - (white @ basis) @ basis.T) ** 2, axis=-1))
