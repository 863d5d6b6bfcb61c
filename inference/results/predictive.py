"""Predictive checks: compare the observed summary with prior and posterior predictions.

One test checks whether a histogram of reports fits the fitted law under its noise. It projects the directions
that the parameters explain out of the residuals (Neyman's C(α); Rao & Robson 1974), so that any estimate near
the truth gives the same statistic. The remaining posterior uncertainty widens the residuals' covariance. The
test uses two sets of directions: directions in which another law of the answers would move the reports, the
clearest first; and groups of cells, which reveal impossible reports under any law.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from inference.results.verdict import CARE, FIT, NOTE, Finding
from inference.tail_probabilities import squares_beyond

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Shares = NDArray[np.float64]

# Largest probability of a false alarm under the right model, for each question.
FALSE_ALARM = 1e-3
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


def p_value(observed: Vector, cells: Matrix, channel: Matrix, parameters: int) -> float:
    """Return the probability of residuals this large under the fitted law; it is small for a misfit.

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
    """Return True if n reports distinguish the fitted law from two groups, half of all people at each answer.

    The test takes the most similar two-group law; groups near each other are harmless and also give True.
    channel (answers, cells): for answers evenly spaced from bound to bound. Other arguments as for `p_value`.
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
    """The answers' mean, bounds at 0 and 1: from the reports alone (with its error), and by the law."""

    free: float
    error: float
    of_law: float
    p: float


def mean_without_law(observed: Vector, cells: Matrix, channel: Matrix, parameters: int) -> Moment:
    """Compare the fitted law's mean with an estimate from the reports without a law.

    The estimate adds up a number for each report's cell. The numbers are unbiased, that is, their mean given
    any answer is that answer, and have the least variance. p: the probability of a difference as large under
    the fitted law. Arguments as for `p_value`.
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
    """Return squared lengths (answers, answers) of the mean of each two moves."""
    gram = moves @ moves.T
    squares = np.diag(gram)
    return np.asarray((squares[:, None] + squares + 2 * gram) / 4)


def _prepared(cells: Matrix, parameters: int) -> tuple[Vector, Vector, Matrix, Matrix]:
    """Return expected probabilities, their roots, the explained directions, and the draws' moves beyond them.

    Directions are an orthonormal basis (rank, cells), and both are in units of the roots.
    """
    expected = cells.mean(axis=0)
    root = np.sqrt(np.maximum(expected, 1e-300))
    moves = (cells - expected) / root
    # Decompose the Gram matrix: a tenth of the time of decomposing thousands of draws.
    squares, vectors = np.linalg.eigh(moves.T @ moves)
    clear = squares > 1e-13 * max(squares[-1], 1e-300)
    kept = vectors.T[clear][::-1][:parameters]
    basis = np.linalg.qr(np.vstack([root, kept]).T)[0].T
    return expected, root, basis, moves - (moves @ basis.T) @ basis


def _directions(moves: Matrix, explained: Matrix) -> Matrix:
    """Return orthonormal directions (rank, cells), the clearest first, without the explained directions."""
    left = moves - (moves @ explained.T) @ explained
    _, sizes, right = np.linalg.svd(left, full_matrices=False)
    return np.asarray(right[sizes > FAINT * sizes[0]])


def _indicators(expected: Vector, n: float) -> Matrix:
    """Return groups (groups, cells) of neighbouring cells with about equal expected counts."""
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


# An entry is outside if it exceeds the simulated range by more than this part of the range.
SLACK = 0.1
# With a smaller share of groups inside, the observed summary surprises the prior.
FEW_INSIDE = 0.6
# The model does not fit if all groups together are this much farther out than any simulated summary, and this
# improbable by the gamma law with the simulated distances' mean and variance. At most one sound model in a
# thousand exceeds both limits: 60 simulated summaries determine the gamma law no better.
MOST_STRAIN, LEAST_CHANCE = 1.3, 1e-4


@dataclass(frozen=True)
class Predictive:
    """Entries of a summary, per report. prior, posterior: (simulated, groups). observed: (groups,).

    fit_p: the p-value of a test of the whole histogram, if there is one; it then decides on misfit.
    tells_laws: whether these reports would reveal a law of another shape. mean: of the answers, by the law
    and without a law, bounds at 0 and 1; bounds: the same in own units. people: {index of a group of people's
    first entry: the group's name}, for entries by groups of people. before: the observed groups of the
    summary that `prior` simulates, if it differs from `posterior`'s. against: findings against the model
    from checks of other summaries.
    """

    prior: Shares
    posterior: Shares
    observed: Shares
    fit_p: float | None = None
    tells_laws: bool = True
    mean: Moment | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    people: Mapping[int, str] = field(default_factory=dict)
    before: Shares | None = None
    against: tuple[Finding, ...] = ()

    @property
    def observed_before(self) -> Shares:
        """Return the observed entries (groups,) to compare with the prior."""
        return self.observed if self.before is None else self.before

    @property
    def surprised(self) -> bool:
        """Return True if the observed summary is outside the prior's predictive range."""
        return share_inside(self.prior, self.observed_before) < FEW_INSIDE

    @property
    def misfit(self) -> bool:
        """Return True if the observed summary is outside the posterior predictions, here or by another check.

        Under a sound model, each of the two has a false-alarm rate of one in a thousand.
        """
        return bool(self.against) or self._outside

    @property
    def _outside(self) -> bool:
        if self.fit_p is not None:
            return self.fit_p < FALSE_ALARM
        each, seen = _distances(self.posterior, self.observed)
        mean, variance = float(each.mean()), max(float(each.var(ddof=1)), 1e-18)
        strain = seen / max(each.max(), 1e-9)
        # The probability of a joint distance as large, by a gamma law of the simulated distances.
        chance = gammaincc(max(mean**2, 1e-18) / variance, seen * max(mean, 1e-9) / variance)
        return bool(strain > MOST_STRAIN and chance < LEAST_CHANCE)

    def in_words(self) -> str:
        """Return one sentence on each of the two checks."""
        prior = 100 * share_inside(self.prior, self.observed_before)
        after = 100 * share_inside(self.posterior, self.observed)
        first = f"The prior's predictive range contains {prior:.0f} % of the observed entries"
        first += ": the reports surprise the prior." if self.surprised else ": the prior allows the reports."
        second = f" After the fit, the posterior's predictive range contains {after:.0f} %"
        return first + second + (": the model does not fit." if self.misfit else ": no misfit shows.")

    def findings(self) -> Iterator[Finding]:
        """Yield reasons against the model if it does not predict the observed summary, then notes."""
        if self._outside:
            reason = "the model does not fit these reports: its intervals describe another law"
            yield Finding(FIT, reason)
        yield from self.against
        if self.mean is not None and self.mean.p < FALSE_ALARM:
            low, high = self.bounds
            first, middle, last, of_law = (
                f"{low + (high - low) * mean:.4g}"
                for mean in (
                    *(self.mean.free + sign * 1.645 * self.mean.error for sign in (-1, 0, 1)),
                    self.mean.of_law,
                )
            )
            reason = (
                f"without a law the mean of the answers is {middle} ({first} to {last}), by this law "
                f"{of_law}: fit the model 'nonparametric' instead"
            )
            yield Finding(FIT, reason)
        if self.surprised:
            note = "the reports are outside the prior's predictive range: check the prior and the bounds"
            yield Finding(NOTE, note)
        if not (self.tells_laws or self.misfit):
            note = (
                "these reports are too few, under this much noise, to distinguish the law from two separate "
                "groups of people: intervals hold if the answers follow the law, but no check here could "
                "show that they do not"
            )
            yield Finding(NOTE, note)


@dataclass(frozen=True)
class Unchecked:
    """Say why no shares of reports were compared with the law, and hold findings against the model."""

    why: str
    against: tuple[Finding, ...] = ()

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings: the law counts as not checked."""
        return (Finding(FIT, self.why, CARE), *self.against)


def share_inside(simulated: Shares, observed: Shares) -> float:
    """Return the share of groups whose observed entry is in or near the range of simulated entries."""
    # A very wide prior has draws that overflow.
    simulated = simulated[np.isfinite(simulated).all(axis=1)]
    if not len(simulated):
        return 0.0
    low, high = simulated.min(axis=0), simulated.max(axis=0)
    slack = SLACK * (high - low) + 1e-9 * (1 + np.abs(observed))
    return float(np.mean((observed >= low - slack) & (observed <= high + slack)))


def _distances(simulated: Shares, observed: Shares) -> tuple[Shares, float]:
    """Return the squared distances of every simulated summary, and of the observed summary.

    They sum squares over the groups and their total, scaled by the spread of the (other) simulated summaries.
    """
    if observed.size > 1:
        # Many single groups hide how many bits a report has in all.
        simulated, observed = (
            np.concatenate([entries, entries.sum(axis=-1, keepdims=True)], axis=-1)
            for entries in (simulated, observed)
        )
    count, middle = len(simulated), simulated.mean(axis=0)
    away = simulated - middle
    floor = 1e-9 * (1 + np.abs(observed))
    others_middle = -away / (count - 1)
    others_variance = (np.sum(away**2, axis=0) - away**2) / (count - 1) - others_middle**2
    each = np.sum((away - others_middle) ** 2 / np.maximum(others_variance, floor**2), axis=1)
    seen = np.sum((observed - middle) ** 2 / np.maximum(away.var(axis=0), floor**2))
    return each, float(seen)
