"""Designs of randomised answers: a mixture of matrices P(report | answer), in fractions.

Only the respondent sees the dice, spinner or second question. The design defines how they turn answers
into reports. A mixture's weights are known, or unknown and learnt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import Any, NamedTuple

import numpy as np

from inference.analyses.channel import Channel, Path, Weights

Row = tuple[Fraction, ...]
Rows = tuple[Row, ...]
# A share of people, or the name of an unknown one.
Share = Fraction | str

ONE, ZERO = Fraction(1), Fraction(0)


@dataclass(frozen=True)
class Mixture:
    """Σ over leaves of the product of unknown weights on the leaf's path × its matrix.

    leaves: {path: matrix}; matrix[i][j] is P(report j | answer i), times the known weights above it.
    weights: {name of unknown weights: labels of their branches, () of a share and its complement}.
    """

    leaves: Mapping[Path, Rows]
    weights: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, matrix: Rows) -> Mixture:
        """Return one matrix as a mixture."""
        return cls({(): matrix})

    @property
    def shape(self) -> tuple[int, int]:
        """Return the numbers of answers and reports."""
        (matrix, *_) = self.leaves.values()
        return len(matrix), len(matrix[0])

    def channel(self, lead: str) -> Channel:
        """Return the mixture in floating point. lead: before the names of unknown weights."""
        matrices = np.asarray([[list(map(float, row)) for row in matrix] for matrix in self.leaves.values()])
        reports = self.shape[1]
        paths = [tuple((lead + name, branch) for name, branch in path) for path in self.leaves]
        weights = {lead + name: Weights(lead + name, labels) for name, labels in self.weights.items()}
        shows, part = np.eye(reports, dtype=bool), np.zeros(reports, np.int64)
        return Channel(matrices[:, None], shows, part, paths=tuple(paths), weights=weights)


def mixed(
    parts: Sequence[Mixture], weights: Sequence[Fraction] | str, labels: tuple[str, ...] = ()
) -> Mixture:
    """Return a mixture of mixtures. weights: known, or the name of unknown ones.

    labels: of the branches of unknown weights; without any, weights is the share of the first of two. Raises
    ValueError if unknown weights are inside themselves, or have other branches elsewhere.
    """
    leaves: dict[Path, Rows] = {}
    names: dict[str, tuple[str, ...]] = {} if not isinstance(weights, str) else {weights: labels}
    for branch, part in enumerate(parts):
        if any(names.get(name, own) != own for name, own in part.weights.items()):
            raise ValueError(next(name for name, own in part.weights.items() if names.get(name, own) != own))
        if isinstance(weights, str) and weights in part.weights:
            raise ValueError(weights)
        names |= part.weights
        for path, matrix in part.leaves.items():
            if isinstance(weights, str):
                leaves[tuple(sorted(((weights, branch), *path)))] = matrix
                continue
            scaled = tuple(tuple(weights[branch] * chance for chance in row) for row in matrix)
            leaves[path] = _sum(leaves[path], scaled) if path in leaves else scaled
    return Mixture(leaves, names)


def _sum(first: Rows, second: Rows) -> Rows:
    both = zip(first, second, strict=True)
    return tuple(tuple(a + b for a, b in zip(one, other, strict=True)) for one, other in both)


def split(share: Share, first: Mixture, rest: Mixture) -> Mixture:
    """Return the mixture of `first`, with a share that may be unknown, and the rest."""
    return mixed((first, rest), share if isinstance(share, str) else (share, 1 - share))


class Named(NamedTuple):
    """A named design. needs: its probabilities. expand: {member: probability or share} -> mixture.

    words: a description. cards: whether it may state their number. shares: optional shares of people, unknown
    unless they are stated.
    """

    needs: tuple[str, ...]
    expand: Callable[[Mapping[str, Any]], Mixture]
    words: str
    cards: bool = False
    shares: tuple[str, ...] = ()


def _yes_no(given_no: Fraction, given_yes: Fraction) -> Mixture:
    """Return the matrix from the probabilities of report 1."""
    return Mixture.of(((1 - given_no, given_no), (1 - given_yes, given_yes)))


TRUTH, YES, NO = _yes_no(ZERO, ONE), _yes_no(ONE, ONE), _yes_no(ZERO, ZERO)


def _warner(p: Mapping[str, Any]) -> Mixture:
    return _yes_no(1 - p["p"], p["p"])


def _forced(p: Mapping[str, Any]) -> Mixture:
    return mixed((YES, NO, TRUTH), (p["yes"], p["no"], 1 - p["yes"] - p["no"]))


def _kuk(p: Mapping[str, Any]) -> Mixture:
    """Respondents draw from their answer's deck; report j is the number of red cards among `cards` draws."""
    cards = int(p.get("cards", ONE))
    return Mixture.of((_binomial(cards, p["no"]), _binomial(cards, p["yes"])))


def _binomial(count: int, chance: Fraction) -> Row:
    return tuple(comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1))


NAMED: Mapping[str, Named] = {
    "warner": Named(("p",), _warner, "with p the statement, else its opposite"),
    "mirrored": Named(("p",), _warner, "with p the statement, else its opposite"),
    "disguised": Named(("p",), _warner, "a red card has p in the stack of yes and 1 − p in the stack of no"),
    "forced": Named(("yes", "no"), _forced, "with `yes` forced to say yes, with `no` to say no, else true"),
    "unrelated": Named(
        ("p",),
        lambda p: split(p["p"], TRUTH, split(p["prevalence"], YES, NO)),
        "with p the question, else another one",
        shares=("prevalence",),
    ),
    "crosswise": Named(("p",), _warner, "1: both or neither; the other statement holds with p"),
    "triangular": Named(
        ("p",), lambda p: _yes_no(p["p"], ONE), "1: at least one; the other statement holds with p"
    ),
    "kuk": Named(("yes", "no"), _kuk, "the red cards drawn from one's own deck", cards=True),
    "mangat": Named(
        ("p",), lambda p: _yes_no(1 - p["p"], ONE), "with the trait yes; without it no with p, else yes"
    ),
    "stochastic_lie_detector": Named(
        ("p",),
        lambda p: split(p["t"], _yes_no(1 - p["p"], ONE), _yes_no(1 - p["p"], ZERO)),
        "with the trait yes with a share t; without it no with p, else yes",
        shares=("t",),
    ),
    "cheater_detection": Named(
        ("p",),
        lambda p: split(p["cheaters"], NO, _yes_no(p["p"], ONE)),
        "without the trait forced to say yes with p; cheaters say no",
        shares=("cheaters",),
    ),
}


def _denying(dice: Mixture) -> Mixture:
    """Return the mixture of people who act as if their answer were the first."""
    return Mixture({path: (matrix[0],) * len(matrix) for path, matrix in dice.leaves.items()}, dice.weights)


def _saying_no(dice: Mixture) -> Mixture:
    """Return the matrix of people who give the first report, whatever the dice show."""
    answers, reports = dice.shape
    return Mixture.of(((ONE, *(reports - 1) * (ZERO,)),) * answers)


def _random(dice: Mixture) -> Mixture:
    """Return the matrix of people who give each report with the same probability."""
    answers, reports = dice.shape
    return Mixture.of(((Fraction(1, reports),) * reports,) * answers)


# What a share of people do instead of what the dice tell them; each is a share of those not named after it.
BEHAVIOURS: Mapping[str, Callable[[Mixture], Mixture]] = {
    "denial": _denying,
    "no_saying": _saying_no,
    "random": _random,
}
