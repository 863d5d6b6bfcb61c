"""Half widths of shares of choices, from the information of the reports. Loads no JAX.

A share's expected posterior is computed on a grid: its prior times the likelihood of as many supporting
reports as are expected, so that it is right near 0 too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from inference.default_priors import Stated
from inference.results.intervals import REFUSED, USUAL
from ldp_client import mechanism_for
from ldp_client.mechanisms.choice import ChoiceMechanism
from ldp_client.mechanisms.subset_selection import SubsetSelection
from schemas import Question
from summaries.reductions import REDUCTIONS, sets_of
from summaries.reductions.choice import keeps_patterns, pattern_bits

Vector = NDArray[np.float64]

# For more choices, each is taken by itself.
MOST_TOGETHER = 500
# Places of a share on its grid, and the grid's ends in sds and in supporting reports from the truth.
GRID, FAR, FAR_REPORTS = 257, 8.0, 30.0
# Outcomes of a group's reports, and quantiles of each posterior, by which differences of shares are found.
OUTCOMES, QUANTILES = 25, 60
# Newton steps to the tilt at which shares add up to 1.
TILTS = 4


def even_shares(question: Question) -> dict[str, float]:
    """Return a truth under which all choices are equally common."""
    shares = {f"p[{label}]": 1 / len(question.choices) for label in question.choices or ()}
    return {**(shares or {"p": 0.5}), **({REFUSED: 0.1} if question.refusal else {})}


def widths_of_shares(
    question: Question, truth: Mapping[str, float], answers: Sequence[int], priors: Mapping[str, Stated]
) -> dict[str, Vector]:
    """Return {share: half widths (numbers of answers,)} at a truth. priors: {share: its marginal prior}."""
    names, expected_of = _expectations(question, truth, priors)
    columns = []
    for n in answers:
        expected = expected_of(n)
        below = np.cumsum(_normalized(expected.log_density(expected.told[:, None])), axis=1)
        levels = np.asarray(USUAL.levels)
        ends = np.stack([np.interp(levels * row[-1], row, np.arange(GRID)) for row in below])
        columns.append((ends[:, 1] - ends[:, 0]) * expected.step / 2)
    return dict(zip(names, np.stack(columns, axis=-1), strict=True))


def share_posteriors(
    question: Question, parameter: str, truth: Mapping[str, float], priors: Mapping[str, Stated]
) -> Callable[[int], Vector]:
    """Return a function of n reports: quantiles of a share's posteriors, (OUTCOMES, QUANTILES).

    All outcomes are equally likely.
    """
    names, expected_of = _expectations(question, truth, priors)
    at = names.index(parameter)

    def quantiles(n: int) -> Vector:
        expected = expected_of(n)
        told, reports, grid = expected.told[at], expected.reports[at], expected.grid[at]
        observed = told + np.sqrt(told * (1 - told) / reports) * ndtri(_middles(OUTCOMES))
        below = np.cumsum(_normalized(expected.log_density(observed[:, None], slice(at, at + 1))), axis=1)
        return np.stack([np.interp(_middles(QUANTILES), row, grid) for row in below])

    return quantiles


def _expectations(
    question: Question, truth: Mapping[str, float], priors: Mapping[str, Stated]
) -> tuple[list[str], Callable[[int], _Expected]]:
    """Return the names of a question's shares, and a function of n reports: their expected posteriors."""
    mechanism, variances = cast(ChoiceMechanism, mechanism_for(question)), share_variances(question, truth)
    assert variances is not None
    names = list(variances)
    shares, each = np.asarray([truth[name] for name in names]), np.asarray(list(variances.values()))
    stated, adds_up = [priors[name] for name in names], len(names) > 2 and not question.refusal
    return names, lambda n: _Expected(mechanism, shares, each, n, stated, adds_up)


class _Expected:
    """Shares (k,) on grids (k, GRID), and their expected posteriors from n reports.

    variances: n times those of the estimates. adds_up: whether these are all choices, which add up to 1.
    """

    def __init__(
        self,
        mechanism: ChoiceMechanism,
        shares: Vector,
        variances: Vector,
        n: int,
        priors: Sequence[Stated],
        adds_up: bool,
    ) -> None:
        p, q = float(mechanism.p), float(mechanism.q)
        self.told = q + (p - q) * shares
        # The likelihood of a share is that of supporting reports: as many as give this variance.
        self.reports = n * self.told * (1 - self.told) / (p - q) ** 2 / variances
        far = FAR * np.sqrt(variances / n) + FAR_REPORTS / (self.reports * (p - q))
        low, high = np.maximum(shares - far, 0), np.minimum(shares + far, 1)
        self.step = (high - low) / GRID
        self.grid = low[:, None] + self.step[:, None] * (np.arange(GRID) + 0.5)
        support = q + (p - q) * self.grid
        self._logs = np.log(support), np.log1p(-support)
        self._priors = np.full_like(self.grid, -1e9)
        for stated, share, logs in zip(priors, self.grid, self._priors, strict=True):
            if stated["distribution"] == "beta":
                logs[:] = (stated["a"] - 1) * np.log(share) + (stated["b"] - 1) * np.log1p(-share)
            else:
                logs[(share >= stated["low"]) & (share <= stated["high"])] = 0.0
        if adds_up:
            self._priors -= _tilt(self.log_density(self.told[:, None]), self.grid) * self.grid

    def log_density(self, observed: Vector, place: slice = slice(None)) -> Vector:
        """Return log posteriors (…, GRID), if shares of reports (…, 1) support the choices at `place`."""
        of_support, of_others = (logs[place] for logs in self._logs)
        likelihood = observed * of_support + (1 - observed) * of_others
        return np.asarray(self.reports[place, None] * likelihood + self._priors[place])


def _middles(count: int) -> Vector:
    """Return the middles of equal parts of [0, 1]."""
    return (np.arange(count) + 0.5) / count


def _normalized(log_density: Vector) -> Vector:
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return np.asarray(density / density.sum(axis=1, keepdims=True))


def _tilt(log_density: Vector, grid: Vector) -> float:
    """Return the exponential tilt of all densities of shares (k, GRID) at which their means add up to 1.

    Otherwise the priors of many rare choices would add up to more people than there are.
    """
    tilt = 0.0
    for _ in range(TILTS):
        density = _normalized(log_density - tilt * grid)
        means = (density * grid).sum(axis=1)
        variance = (density * grid**2).sum() - (means**2).sum()
        tilt += (means.sum() - 1) / max(variance, 1e-12)
    return tilt


def share_variances(question: Question, truth: Mapping[str, float]) -> dict[str, float] | None:
    """Return {parameter: n times the variance of its estimate from n reports}; None without a formula."""
    mechanism = cast(ChoiceMechanism, mechanism_for(question))
    refused = truth.get(REFUSED, 0.0)
    names = ["", "p"] if "p" in truth else [name for name in truth if name != REFUSED]
    shares = np.asarray([1 - truth["p"], truth["p"]] if "p" in truth else [truth[name] for name in names])
    if question.refusal:
        names, shares = [*names, REFUSED], np.append((1 - refused) * shares, refused)
    covariance = share_covariance(mechanism, shares)
    if covariance is None:
        return None
    turn = np.eye(len(shares))
    if question.refusal:
        turn[:-1, :-1] /= 1 - refused
        turn[:-1, -1] = shares[:-1] / (1 - refused) ** 2
    variances = np.einsum("ij,jk,ik->i", turn, covariance, turn) if covariance.ndim == 2 else covariance
    return {name: float(value) for name, value in zip(names, variances, strict=True) if name}


def share_covariance(mechanism: ChoiceMechanism, shares: Vector) -> Vector | None:
    """Return n times the covariance of the estimated shares (k, k); only variances (k,) of very many.

    None for sets of labels that depend on one another, if there are too many to sum over.
    """
    p, q = float(mechanism.p), float(mechanism.q)
    support = q + (p - q) * shares
    alone = support * (1 - support) / (p - q) ** 2
    if len(shares) > MOST_TOGETHER:
        return alone
    law = law_of_reports(mechanism)
    if law is not None:
        # Shares add up to 1: all but the last are free.
        free = np.vstack([np.eye(len(shares) - 1), -np.ones(len(shares) - 1)])
        turned = law @ free
        information = (turned / (law @ shares)[:, None]).T @ turned
        return np.asarray(free @ np.linalg.inv(information) @ free.T)
    if isinstance(mechanism, SubsetSelection):
        return alone
    covariance = np.diag(alone + shares**2) - np.outer(shares, shares)
    toward = covariance.sum(axis=1)
    return np.asarray(covariance - np.outer(toward, toward) / toward.sum())


def law_of_reports(mechanism: ChoiceMechanism) -> Vector | None:
    """Return the probabilities of all reports given each answer, (reports, answers); None for too many.

    A report is what a summary distinguishes: olh's hashes are independent three at a time, so that for more
    its law is within 0.3 % of this one.
    """
    reduction = REDUCTIONS[mechanism.name]
    kind = reduction.counts(mechanism)
    odds = float(mechanism.odds[0] / mechanism.odds[1])
    if kind in ("choices", "columns"):
        size = mechanism.payload_size
        payloads = b"".join(place.to_bytes(size, "big") for place in range(reduction.size(mechanism)))
        sets = sets_of(mechanism, np.frombuffer(payloads, np.uint8).reshape(-1, size))
        members = np.unpackbits(sets, axis=1, bitorder="little")[:, : mechanism.choices]
        law = np.where(members == 1, odds, 1.0)
    elif not keeps_patterns(mechanism.choices):
        return None
    elif isinstance(mechanism, SubsetSelection):
        bits = pattern_bits(mechanism.choices)
        law = np.where(bits == 1, odds, 1.0)[bits.sum(axis=1) == mechanism.size]
    else:
        bits, p, q = pattern_bits(mechanism.choices), float(mechanism.p), float(mechanism.q)
        others = np.prod(np.where(bits == 1, q, 1 - q), axis=1, keepdims=True)
        law = others * np.where(bits == 1, p / q, (1 - p) / (1 - q))
    return np.asarray(law / law.sum(axis=0))
