"""A test whether data holders share one line, as their common regression assumes.

Each holder's Σ(y − xᵀθ)x is known up to noise of known law. If all holders share the line, it has mean zero
and covariance sd² Σxxᵀ given the holder's features, whatever the features' distribution and its differences
between holders. The test uses the line that fits all holders best, so that no estimate of the line can raise
an alarm.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from inference.likelihoods.holders import HolderStatistics, Matrix
from inference.models.record_sums import rows_of
from inference.results.verdict import FALSE_ALARM
from inference.tail_probabilities import squares_beyond
from inference.units import RecordUnits
from schemas import Question

# Under Laplace noise, sums of squares have no χ² law: this many are drawn instead, this many at a time.
DRAWN, AT_ONCE = 4000, 100
# Lower limit of a Gram matrix's eigenvalues, as a part of the holder's rows.
FLOOR = 1e-6


def holders_differ(
    question: Question, statistics: HolderStatistics, seed: int, draws: Mapping[str, NDArray[np.float64]]
) -> tuple[str, ...]:
    """Return reasons against one line for all holders, from a posterior's draws (chains, draws) by name."""
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
