"""The test of a histogram of reports against a fitted law, and the mean that needs no law.

The test of a histogram projects the directions that the parameters explain out of the residuals (Neyman's
C(α); Rao & Robson 1974), so that any estimate near the truth gives the same statistic. The remaining
posterior uncertainty widens the residuals' covariance. The test uses two sets of directions: directions in
which another law of the answers would move the reports, the clearest first; and groups of cells, which reveal
impossible reports under any law.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.tail_probabilities import squares_beyond

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Numbers of the clearest directions over which squares are summed and tested.
DEPTHS = (1, 2, 4, 8)
# Directions that move reports by less than this part of the clearest are noise alone.
FAINT = 1e-4
MOST_GROUPS, FEWEST_EXPECTED = 64, 10.0
# With fewer reports, sums are not near enough to normal for such small probabilities.
FEWEST_REPORTS = 200
# Factor on the posterior covariance, to allow for the effect of curvature on the residuals.
CURVATURE = 2.0
# The reports must be able to reveal two groups of people this part of the bounds apart. With this
# noncentrality of χ² they do in most cases.
APART, CLEAR = 0.2, 30.0


class Moment(NamedTuple):
    """The answers' mean, bounds at 0 and 1: from the reports alone (with its error), and by the law."""

    free: float
    error: float
    of_law: float
    p: float


class Histogram:
    """Counts of reports by cell, compared with a fitted law. All directions are in units of the cells' sds.

    Args:
        observed: (cells,) counts.
        cells: (draws, cells) probabilities at draws of the posterior.
        channel: (answers, cells) probabilities of a report, for answers evenly spaced from bound to bound.
        parameters: how many the law has.
    """

    def __init__(self, observed: Vector, cells: Matrix, channel: Matrix, parameters: int) -> None:
        self.observed, self.n, self.expected = observed, float(observed.sum()), cells.mean(axis=0)
        self.root = np.sqrt(np.maximum(self.expected, 1e-300))
        self.residual = np.sqrt(self.n) * (observed / self.n - self.expected) / self.root
        self.scaled = channel / self.root
        self.moves = (channel - self.expected) / self.root
        # Decompose the Gram matrix: a tenth of the time of decomposing thousands of draws.
        drawn = (cells - self.expected) / self.root
        squares, vectors = np.linalg.eigh(drawn.T @ drawn)
        clear = squares > 1e-13 * max(squares[-1], 1e-300)
        kept = vectors.T[clear][::-1][:parameters]
        self.explained = np.linalg.qr(np.vstack([self.root, kept]).T)[0].T
        self.spread = self._unexplained(drawn)

    def p_value(self) -> float:
        """Return the probability of residuals this large under the fitted law; it is small for a misfit."""
        if self.n < FEWEST_REPORTS:
            return 1.0
        clearest, groups = self._directions(self.moves), self._directions(self._indicators() * self.root)
        found = [self._sum_p(groups)]
        found += [self._sum_p(clearest[:depth]) for depth in DEPTHS if depth <= len(clearest)]
        return min(1.0, len(found) * min(found))

    def tells_two_groups(self) -> bool:
        """Return True if so many reports distinguish the law from two groups, half of all at each answer.

        The test takes the most similar two-group law; groups near each other are harmless and also give True.
        """
        low, high = np.triu_indices(len(self.moves))
        likest = int(np.argmin(_half_distances(self.moves)[low, high]))
        if high[likest] - low[likest] < APART * (len(self.moves) - 1):
            return True
        left = _half_distances(self._unexplained(self.moves))
        return bool(self.n * left[low[likest], high[likest]] > CLEAR)

    def mean_without_law(self) -> Moment:
        """Compare the fitted law's mean with an estimate from the reports without a law.

        The estimate adds up a number for each report's cell. The numbers are unbiased, that is, their mean
        given any answer is that answer, and have the least variance. p: the probability of a difference as
        large under the fitted law.
        """
        gram = np.linalg.pinv(self.scaled @ self.scaled.T, rcond=1e-9, hermitian=True)
        direction = self.scaled.T @ (gram @ np.linspace(0, 1, len(self.scaled)))
        each = direction / self.root
        free, of_law = float(each @ self.observed / self.n), float(self.expected @ each)
        error = float(np.sqrt(max(each**2 @ self.observed / self.n - free**2, 0.0) / self.n))
        left = self._unexplained(direction)
        size = float(np.linalg.norm(left))
        if self.n < FEWEST_REPORTS or size < FAINT * float(np.linalg.norm(direction)):
            return Moment(free, error, of_law, 1.0)
        return Moment(free, error, of_law, self._sum_p(left[None] / size))

    def _unexplained(self, moves: Matrix) -> Matrix:
        """Return moves without the explained directions."""
        return np.asarray(moves - (moves @ self.explained.T) @ self.explained)

    def _directions(self, moves: Matrix) -> Matrix:
        """Return orthonormal directions (rank, cells), the clearest first, without the explained ones."""
        _, sizes, right = np.linalg.svd(self._unexplained(moves), full_matrices=False)
        return np.asarray(right[sizes > FAINT * sizes[0]])

    def _indicators(self) -> Matrix:
        """Return groups (groups, cells) of neighbouring cells with about equal expected counts."""
        count = int(np.clip(self.n / FEWEST_EXPECTED / 2, 4, MOST_GROUPS))
        middle = np.cumsum(self.expected) - self.expected / 2
        place = np.minimum((middle * count).astype(int), count - 1)
        return np.asarray(place == np.unique(place)[:, None], dtype=np.float64)

    def _sum_p(self, directions: Matrix) -> float:
        along, spread = directions @ self.residual, np.sqrt(self.n) * self.spread @ directions.T
        covariance = np.eye(len(directions)) + CURVATURE * spread.T @ spread / len(spread)
        return squares_beyond(float(along @ np.linalg.solve(covariance, along)), len(directions))


def _half_distances(moves: Matrix) -> Matrix:
    """Return squared lengths (answers, answers) of the mean of each two moves."""
    gram = moves @ moves.T
    squares = np.diag(gram)
    return np.asarray((squares[:, None] + squares + 2 * gram) / 4)
