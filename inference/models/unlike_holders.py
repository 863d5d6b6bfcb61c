"""A test whether data holders share one line, as their common regression assumes.

Each holder's Σ(y − xᵀθ)x is known up to noise of known law. If all holders share the line, it has mean zero
and covariance sd² Σxxᵀ given the holder's features, whatever the features' distribution and its differences
between holders. The test uses the line that fits all holders best, so that no estimate of the line can raise
an alarm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.likelihoods.holders.statistics import HolderStatistics, Matrix
from inference.models.holders import rows_of
from inference.results.predictive import FALSE_ALARM
from inference.tail_probabilities import squares_beyond
from inference.units import RecordUnits
from schemas import Question

# Under Laplace noise, sums of squares have no χ² law: this many are drawn instead, this many at a time.
DRAWN, AT_ONCE = 4000, 100
# Lower limit of a Gram matrix's eigenvalues, as a part of the holder's rows.
FLOOR = 1e-6


class Lines(NamedTuple):
    """second: E[θθᵀ] (p, p) over a posterior, θ = (−line, 1). variance: E[sd²], both in scaled units."""

    second: Matrix
    variance: float


def holders_differ(
    question: Question, statistics: HolderStatistics, seed: int, draws: Mapping[str, NDArray[np.float64]]
) -> tuple[str, ...]:
    """Return reasons against one line for all holders, from a posterior's draws (chains, draws) by name."""
    if statistics.holders < 2:
        return ()
    if p_value(statistics, _lines(question, statistics, draws), seed) >= FALSE_ALARM:
        return ()
    return (
        "holders differ: their sums are farther from one common line than sampling and noise can explain, "
        "so that slopes mix effects within holders with differences between them, and intervals are too "
        "narrow; fit each holder's report alone and compare",
    )


def p_value(statistics: HolderStatistics, lines: Lines, seed: int = 0) -> float:
    """Return the probability that holders sharing one line are as far apart as these."""
    sums, noise = _with_constant(statistics)
    q = statistics.columns
    gram, cross = sums[:, :q, :q], sums[:, :q, q]
    covariance = lines.variance * _positive(gram, rows_of(statistics).expected * statistics.average)
    covariance = covariance + _noise_covariance(noise, lines.second)
    # Whitened, the sums of each holder are linear in the line: least squares take the best one out.
    white = np.linalg.inv(np.linalg.cholesky(covariance))
    design = (white @ gram).reshape(-1, q)
    basis = np.linalg.qr(design)[0]
    squares = _left(basis, (white @ cross[..., None]).reshape(1, -1))
    if statistics.law == "gaussian":
        return squares_beyond(float(squares[0]), len(design) - q)
    return _drawn_p(float(squares[0]), basis, white, covariance, noise, lines, seed)


def _left(basis: Matrix, white: Matrix) -> Matrix:
    """Return sums of squares (…,) of white numbers (…, entries), after projecting out basis (entries, q)."""
    return np.asarray(np.sum((white - (white @ basis) @ basis.T) ** 2, axis=-1))


def _drawn_p(
    seen: float,
    basis: Matrix,
    white: Matrix,
    covariance: Matrix,
    noise: Matrix,
    lines: Lines,
    seed: int,
) -> float:
    """Simulate the p-value with Laplace noise of sds `noise` (p, p)."""
    random = np.random.default_rng(seed)
    holders, q = white.shape[:2]
    sampling = np.linalg.cholesky(covariance - _noise_covariance(noise, lines.second) + 1e-12 * np.eye(q))
    sizes = np.sqrt(np.diag(lines.second))
    beyond = 0
    for _ in range(DRAWN // AT_ONCE):
        entries = random.laplace(size=(AT_ONCE, holders, q + 1, q + 1)) * noise / np.sqrt(2)
        entries = np.triu(entries) + np.swapaxes(np.triu(entries, 1), -1, -2)
        own = sampling @ random.normal(size=(AT_ONCE, holders, q, 1))
        drawn = white @ (entries[:, :, :q] @ sizes[:, None] + own)
        beyond += int(np.sum(_left(basis, drawn.reshape(AT_ONCE, -1)) >= seen))
    return (1 + beyond) / (1 + DRAWN)


def _with_constant(statistics: HolderStatistics) -> tuple[Matrix, Matrix]:
    """Return the sums with the number of records filled in, and the sd (p, p) of each entry's noise.

    Squares of the response are not used, and may not have been released.
    """
    sums = np.where(np.isfinite(statistics.noise), statistics.sums, 0.0)
    noise = np.where(np.isfinite(statistics.noise), statistics.noise, 0.0)
    noise = noise * (np.sqrt(2) if statistics.law == "laplace" else 1.0)
    if statistics.intercept:
        rows = rows_of(statistics)
        sums[:, 0, 0] = rows.expected * statistics.average
        noise[0, 0] = np.sqrt(rows.variance.max()) * statistics.average
    return sums, noise


def _positive(gram: Matrix, records: Matrix) -> Matrix:
    """Make noisy Gram matrices (j, q, q) of `records` (j,) positive definite."""
    values, axes = np.linalg.eigh(gram)
    values = np.maximum(values, FLOOR * np.maximum(records, 1.0)[:, None])
    return np.asarray((axes * values[:, None]) @ np.swapaxes(axes, -1, -2))


def _noise_covariance(noise: Matrix, second: Matrix) -> Matrix:
    """Return the covariance (q, q) of the first q entries of Eθ, for symmetric E with sds `noise` (p, p)."""
    q = len(noise) - 1
    variance = np.square(noise)
    own = variance @ np.diag(second)
    between = variance * second
    np.fill_diagonal(between, own)
    return np.asarray(between[:q, :q])


def _lines(
    question: Question, statistics: HolderStatistics, draws: Mapping[str, NDArray[np.float64]]
) -> Lines:
    """Convert parameters in own units to lines in the units of the sums."""
    units = RecordUnits(question)
    slopes = np.stack([draws[f"coefficient[{name}]"].ravel() for name in units.names], axis=-1)
    parts = [slopes * units.unit / units.response.unit]
    if statistics.intercept:
        centre = draws["intercept"].ravel() + slopes @ units.zero - units.response.zero
        parts.insert(0, (centre / units.response.unit)[:, None])
    line = np.concatenate([*(-part for part in parts), np.ones((len(slopes), 1))], axis=-1)
    second = line.T @ line / len(line)
    return Lines(second, float(np.mean(np.square(draws["sd"] / units.response.unit))))
