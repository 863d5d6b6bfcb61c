"""What prior and posterior expect of a summary, beside the one that came, and what to say of it.

Whether a histogram of reports can be that of the fitted law behind its noise: what the parameters can
explain is projected out of the residuals (Neyman's C(α); Rao & Robson 1974), so that any estimate near the
truth gives the same statistic, and what the posterior leaves open beyond that widens their covariance. Two
sets of directions are looked at: those that another law of the answers would move through the channel, the
clearest first, and groups of cells, in which impossible reports show under any law.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from inference.chances import squares_beyond

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


class Moment(NamedTuple):
    """The answers' mean, bounds at 0 and 1: what reports say, with its standard error, and what the law."""

    free: float
    error: float
    of_law: float
    p: float


def mean_without_law(observed: Vector, cells: Matrix, channel: Matrix, parameters: int) -> Moment:
    """Hold the fitted law's mean against the one that the reports tell without any law.

    Of all numbers for each cell whose mean, given any answer, is that answer, the least varying are added up.
    p: the probability, under the fitted law, of a difference as large. Arguments as of `p_value`.
    """
    n = observed.sum()
    expected, root, explained, unexplained = _prepared(cells, parameters)
    scaled = channel / root
    weights = np.linalg.pinv(scaled @ scaled.T, rcond=1e-9, hermitian=True) @ np.linspace(0, 1, len(channel))
    direction = scaled.T @ weights
    each = direction / root
    free, of_law = float(each @ observed / n), float(expected @ each)
    error = float(np.sqrt(max(each**2 @ observed / n - free**2, 0.0) / n))
    left = direction - (direction @ explained.T) @ explained
    size = float(np.linalg.norm(left))
    if n < FEWEST_REPORTS or size < FAINT * float(np.linalg.norm(direction)):
        return Moment(free, error, of_law, 1.0)
    residual = np.sqrt(n) * (observed / n - expected) / root
    return Moment(free, error, of_law, _sum_p(left[None] / size, residual, unexplained, n, None))


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
    # Of the Gram matrix: a tenth of the time of the draws' own decomposition, which are thousands.
    squares, vectors = np.linalg.eigh(moves.T @ moves)
    clear = squares > 1e-13 * max(squares[-1], 1e-300)
    kept = vectors.T[clear][::-1][:parameters]
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
    return squares_beyond(squares, len(chosen))


Shares = NDArray[np.float64]

# Beyond the simulated range by more than this part of it counts as outside.
SLACK = 0.1
# With fewer groups inside, the prior is surprised, or the model does not fit.
FEW_INSIDE = 0.6
# Nor does it where all groups together are so much farther out than any simulated summary is, and are so
# improbable by the gamma law with the simulated ones' mean and variance: of sound models at most one in a
# thousand is there, as 60 simulated summaries tell that law no better.
MOST_STRAIN, LEAST_CHANCE = 1.3, 1e-4


@dataclass(frozen=True)
class Predictive:
    """prior, posterior: (simulated, groups); observed: (groups,). Entries of a summary for each report.

    fit_p: the p-value of a test of the whole histogram, where there is one; it decides then. tells_laws:
    whether these reports would show a law of another shape. mean: of the answers, by the law and without one.
    people: {the first entry of some people: who they are}, of entries by groups of people.
    before: what is observed of what the prior expects, where that is another summary: its groups are then
    (simulated, groups) of this.
    against: why the model does not fit by checks of other summaries.
    """

    prior: Shares
    posterior: Shares
    observed: Shares
    fit_p: float | None = None
    tells_laws: bool = True
    mean: Moment | None = None
    people: Mapping[int, str] = field(default_factory=dict)
    before: Shares | None = None
    against: tuple[str, ...] = ()

    @property
    def observed_before(self) -> Shares:
        """What is held against the prior: (groups,)."""
        return self.observed if self.before is None else self.before

    def inside(self, simulated: Shares, observed: Shares | None = None) -> float:
        """The share of groups whose observed entry lies in the range of the simulated ones, or near it."""
        observed = self.observed if observed is None else observed
        # A very wide prior has draws that are beyond floating point.
        simulated = simulated[np.isfinite(simulated).all(axis=1)]
        if not len(simulated):
            return 0.0
        low, high = simulated.min(axis=0), simulated.max(axis=0)
        slack = SLACK * (high - low) + 1e-9 * (1 + np.abs(observed))
        return float(np.mean((observed >= low - slack) & (observed <= high + slack)))

    def strain(self, simulated: Shares) -> float:
        """How far out the observed entries are together, in the distance of the farthest simulated ones."""
        own, seen = self._distances(simulated)
        return float(seen / max(own.max(), 1e-9))

    def chance(self, simulated: Shares) -> float:
        """The probability of entries as far out together, by the gamma law that fits simulated distances."""
        own, seen = self._distances(simulated)
        mean, variance = float(own.mean()), max(float(own.var(ddof=1)), 1e-18)
        return float(gammaincc(max(mean**2, 1e-18) / variance, seen * max(mean, 1e-9) / variance))

    def _distances(self, simulated: Shares) -> tuple[Shares, float]:
        """Of every simulated summary, and of the observed one.

        Sums of squares over the groups and their total, in the spread of the (other) simulated summaries.
        """
        simulated, observed = _with_total(simulated), _with_total(self.observed)
        count, middle = len(simulated), simulated.mean(axis=0)
        away = simulated - middle
        floor = 1e-9 * (1 + np.abs(observed))
        others_middle = -away / (count - 1)
        others_variance = (np.sum(away**2, axis=0) - away**2) / (count - 1) - others_middle**2
        own = np.sum((away - others_middle) ** 2 / np.maximum(others_variance, floor**2), axis=1)
        seen = np.sum((observed - middle) ** 2 / np.maximum(away.var(axis=0), floor**2))
        return own, float(seen)

    @property
    def surprised(self) -> bool:
        """Whether what came lies outside what the prior expects."""
        return self.inside(self.prior, self.observed_before) < FEW_INSIDE

    @property
    def misfit(self) -> bool:
        """Whether what came lies outside what the posterior expects, here or by another check.

        Of sound models, by each of the two once in a thousand.
        """
        return bool(self.against) or self._outside

    @property
    def _outside(self) -> bool:
        if self.fit_p is not None:
            return self.fit_p < FALSE_ALARM
        return self.strain(self.posterior) > MOST_STRAIN and self.chance(self.posterior) < LEAST_CHANCE

    def in_words(self) -> str:
        """One sentence on each of the two checks."""
        prior = 100 * self.inside(self.prior, self.observed_before)
        after = 100 * self.inside(self.posterior)
        first = f"The range of what the prior expects holds {prior:.0f} % of what was observed"
        first += ": what came surprises the prior." if self.surprised else ": it allows what came."
        second = f" After the fit, what the posterior expects holds {after:.0f} %"
        return first + second + (": the model does not fit." if self.misfit else ": no misfit shows.")

    def notes(self) -> tuple[str, ...]:
        """What must be said wherever the numbers stand, of the prior; nothing where it allows what came."""
        found = []
        if self.surprised:
            found.append(
                "what came lies outside what the prior expects: look at the prior, and at the bounds"
            )
        if not (self.tells_laws or self.misfit):
            found.append(
                "these reports are too few, under so much noise, to tell the law from one of two groups "
                "of people: intervals hold if the answers follow it, and nothing here could show "
                "that they do not"
            )
        return tuple(found)

    def against_free(self, low: float, width: float) -> tuple[str, ...]:
        """Why the law is not to be believed where its mean is not that of the reports; in own units."""
        found = self.mean
        if found is None or found.p >= FALSE_ALARM:
            return ()
        first, last = (low + width * (found.free + sign * 1.645 * found.error) for sign in (-1, 1))
        return (
            f"without a law the mean of the answers is {low + width * found.free:.4g} ({first:.4g} to "
            f"{last:.4g}), by this one {low + width * found.of_law:.4g}: fit the model 'free' instead",
        )

    def reasons(self) -> tuple[str, ...]:
        """Why the model is not to be believed; nothing where it expects what came."""
        if not self._outside:
            return self.against
        return ("the model does not fit these reports: its intervals are those of another law", *self.against)


def _with_total(entries: Shares) -> Shares:
    """Entries (…, groups) and their total: how many bits a report has in all each of many groups hides."""
    total = entries.sum(axis=-1, keepdims=True)
    return np.concatenate([entries, total], axis=-1) if entries.shape[-1] > 1 else entries
