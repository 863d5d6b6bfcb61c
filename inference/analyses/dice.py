"""Designs of randomised answers: each is a matrix P(report | answer), in fractions; some leave a share open.

The respondent is the only one who sees the dice, spinner or second question; the design says how they turn
answers into reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import NamedTuple

Row = tuple[Fraction, ...]
Rows = tuple[Row, ...]
Numbers = Mapping[str, Fraction]

ONE, ZERO = Fraction(1), Fraction(0)


@dataclass(frozen=True)
class Channel:
    """matrix[i][j] = P(report j | answer i); unknown: {share: what its value times this adds}."""

    matrix: Rows
    unknown: Mapping[str, Rows] = field(default_factory=dict)


class Named(NamedTuple):
    """A design with a name. needs: its probabilities. may: what may be left out. words: for people."""

    needs: tuple[str, ...]
    expand: Callable[[Numbers], Channel]
    words: str
    may: tuple[str, ...] = ()
    answers: tuple[str, ...] = ("no", "yes")


def _yes_no(given_no: Fraction, given_yes: Fraction) -> Rows:
    """From the probabilities of the report 1."""
    return ((1 - given_no, given_no), (1 - given_yes, given_yes))


def _warner(p: Numbers) -> Channel:
    return Channel(_yes_no(1 - p["p"], p["p"]))


def _forced(p: Numbers) -> Channel:
    yes, no = p["yes"], p["no"]
    return Channel(_yes_no(yes, 1 - no))


def _unrelated(p: Numbers) -> Channel:
    share = p["p"]
    if "prevalence" in p:
        other = (1 - share) * p["prevalence"]
        return Channel(_yes_no(other, share + other))
    # 1 − p of the people answer the other question: their yes grows with its prevalence.
    moved: Rows = ((share - 1, 1 - share), (share - 1, 1 - share))
    return Channel(_yes_no(ZERO, share), {"prevalence": moved})


def _crosswise(p: Numbers) -> Channel:
    """The report 1 says "both or neither", of the statement and one that holds with probability p."""
    return Channel(_yes_no(1 - p["p"], p["p"]))


def _triangular(p: Numbers) -> Channel:
    """The report 1 says "at least one of the two"; nobody says which."""
    return Channel(_yes_no(p["p"], ONE))


def _kuk(p: Numbers) -> Channel:
    """Draws from the deck of one's own answer; report j is the number of red cards among `cards` draws."""
    cards = int(p.get("cards", ONE))
    return Channel((_binomial(cards, p["no"]), _binomial(cards, p["yes"])))


def _binomial(count: int, chance: Fraction) -> Row:
    weights = [comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]
    return tuple(weights)


def _mangat(p: Numbers) -> Channel:
    """Who has the trait says yes; the others say yes with probability 1 − p, by Warner's device."""
    return Channel(_yes_no(1 - p["p"], ONE))


def _lie_detector(p: Numbers) -> Channel:
    """Mangat's design in which only a share t of those with the trait say yes, the others no."""
    moved: Rows = ((ZERO, ZERO), (-ONE, ONE))
    return Channel(_yes_no(1 - p["p"], ZERO), {"t": moved})


def _cheater_detection(p: Numbers) -> Channel:
    """Who has not the trait is forced to say yes with p; cheaters say no whatever the device says."""
    return Channel((*_yes_no(p["p"], ONE), (ONE, ZERO)))


NAMED: Mapping[str, Named] = {
    "warner": Named(("p",), _warner, "with p the statement, else its opposite"),
    "mirrored": Named(("p",), _warner, "with p the statement, else its opposite"),
    "disguised": Named(("p",), _warner, "a red card has p in the stack of yes and 1 − p in that of no"),
    "forced": Named(("yes", "no"), _forced, "with `yes` forced to say yes, with `no` to say no, else true"),
    "unrelated": Named(("p",), _unrelated, "with p the question, else another one", ("prevalence",)),
    "crosswise": Named(("p",), _crosswise, "1: both or neither; the other statement holds with p"),
    "triangular": Named(("p",), _triangular, "1: at least one; the other statement holds with p"),
    "kuk": Named(("yes", "no"), _kuk, "the red cards among those drawn from one's own deck", ("cards",)),
    "mangat": Named(("p",), _mangat, "with the trait yes; without it no with p, else yes"),
    "stochastic_lie_detector": Named(
        ("p",), _lie_detector, "with the trait yes with a share t; without it no with p, else yes"
    ),
    "cheater_detection": Named(
        ("p",), _cheater_detection, "without the trait forced to say yes with p; cheaters say no",
        answers=("no", "yes", "cheater"),
    ),
}  # fmt: skip
