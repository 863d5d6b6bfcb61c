"""Whether a histogram of reports can be that of the fitted law behind its noise.

What the parameters can explain is projected out of the residuals (Neyman's C(α); Rao & Robson 1974), so that
any estimate near the truth gives the same statistic, and what the posterior leaves open beyond that widens
their covariance. Two sets of directions are looked at: those that another law of the answers would move
through the channel, the clearest first, and groups of cells, in which impossible reports show under any law.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Under the right model so often at most a fit is called wrong, for each question.
FALSE_ALARM = 1e-3
# The sums of squares over so many of the clearest directions are looked at.
DEPTHS = (1, 2, 4, 8)
# Directions that move reports by less than this part of the clearest are noise alone.
FAINT = 1e-4
MOST_GROUPS, FEWEST_EXPECTED = 64, 10.0
# With fewer reports, sums are not near enough to normal for such small probabilities.
FEWEST_REPORTS = 200
# So much larger than its posterior spread may be what curvature does to the residuals.
CURVATURE = 2.0
# Groups of people so much of the bounds apart the reports must be able to tell: with this noncentrality of χ²
# they do in most cases.
APART, CLEAR = 0.2, 30.0


def p_value(observed: Vector, cells: Matrix, channel: Matrix, parameters: int) -> float:
    """The probability, under the fitted law, of residuals as large as these: small where it does not fit.

    observed (cells,): counts. cells (draws, cells): probabilities at draws of the posterior. channel
    (answers, cells): probabilities of a report given each of some answers. parameters: how many the law has.
    """
    n = observed.sum()
    if n < FEWEST_REPORTS:
        return 1.0
    expected, root, explained, unexplained = _prepared(cells, parameters)
    residual = np.sqrt(n) * (observed / n - expected) / root
    clearest = _directions((channel - expected) / root, explained)
    groups = _directions(_indicators(expected, n) * root, explained)
    found = [_sum_p(groups, residual, unexplained, n, None)]
    found += [_sum_p(clearest, residual, unexplained, n, depth) for depth in DEPTHS if depth <= len(clearest)]
    return min(1.0, len(found) * min(found))


def tells_two_groups(n: float, cells: Matrix, channel: Matrix, parameters: int) -> bool:
    """Whether n reports tell the fitted law from two groups, half of all people at each of two answers.

    Of such laws the likest is taken; one whose groups are near each other does no harm. channel (answers,
    cells): of answers evenly spaced from bound to bound; the rest as for `p_value`.
    """
    expected, root, explained, _ = _prepared(cells, parameters)
    moves = (channel - expected) / root
    low, high = np.triu_indices(len(channel))
    likest = int(np.argmin(_half_distances(moves)[low, high]))
    if high[likest] - low[likest] < APART * (len(channel) - 1):
        return True
    left = moves - (moves @ explained.T) @ explained
    return bool(n * _half_distances(left)[low[likest], high[likest]] > CLEAR)


def _half_distances(moves: Matrix) -> Matrix:
    """Squared lengths (answers, answers) of the mean of each two moves."""
    gram = moves @ moves.T
    squares = np.diag(gram)
    return np.asarray((squares[:, None] + squares + 2 * gram) / 4)


def _prepared(cells: Matrix, parameters: int) -> tuple[Vector, Vector, Matrix, Matrix]:
    """Expected probabilities, their roots, and in units of those what parameters explain and what not."""
    expected = cells.mean(axis=0)
    root = np.sqrt(np.maximum(expected, 1e-300))
    return expected, root, *_split((cells - expected) / root, parameters, root)


def _split(moves: Matrix, parameters: int, root: Vector) -> tuple[Matrix, Matrix]:
    """An orthonormal basis (rank, cells) of what parameters explain, and what draws move beyond it."""
    _, sizes, right = np.linalg.svd(moves, full_matrices=False)
    kept = right[:parameters][sizes[:parameters] > 1e-9 * max(sizes[0], 1e-300)]
    basis = np.linalg.qr(np.vstack([root, kept]).T)[0].T
    return basis, moves - (moves @ basis.T) @ basis


def _directions(moves: Matrix, explained: Matrix) -> Matrix:
    """Orthonormal directions (rank, cells), the clearest first, without what parameters explain."""
    left = moves - (moves @ explained.T) @ explained
    _, sizes, right = np.linalg.svd(left, full_matrices=False)
    return np.asarray(right[sizes > FAINT * sizes[0]])


def _indicators(expected: Vector, n: float) -> Matrix:
    """Groups (groups, cells) of neighbouring cells with about equal expected counts."""
    count = int(np.clip(n / FEWEST_EXPECTED / 2, 4, MOST_GROUPS))
    middle = np.cumsum(expected) - expected / 2
    place = np.minimum((middle * count).astype(int), count - 1)
    return np.asarray(place == np.unique(place)[:, None], dtype=np.float64)


def _sum_p(directions: Matrix, residual: Vector, moves: Matrix, n: float, depth: int | None) -> float:
    chosen = directions[:depth]
    along, spread = chosen @ residual, np.sqrt(n) * moves @ chosen.T
    covariance = np.eye(len(chosen)) + CURVATURE * spread.T @ spread / len(moves)
    squares = float(along @ np.linalg.solve(covariance, along))
    return float(stats.chi2.sf(squares, len(chosen)))
