"""Designs of randomised answers: each is a matrix P(report | answer), in fractions; some leave a share open.

Only the respondent sees the dice, spinner or second question. The design defines how they turn answers
into reports.
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
    """matrix[i][j] = P(report j | answer i); unknown: {share: what it adds, times its value}."""

    matrix: Rows
    unknown: Mapping[str, Rows] = field(default_factory=dict)


class Named(NamedTuple):
    """A named design. needs: its probabilities. may: optional members. words: a description."""

    needs: tuple[str, ...]
    expand: Callable[[Numbers], Channel]
    words: str
    may: tuple[str, ...] = ()
    answers: tuple[str, ...] = ("no", "yes")


def _yes_no(given_no: Fraction, given_yes: Fraction) -> Rows:
    """Return the matrix from the probabilities of report 1."""
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
    # 1 − p of the people answer the other question. Its prevalence raises their share of yes.
    moved: Rows = ((share - 1, 1 - share), (share - 1, 1 - share))
    return Channel(_yes_no(ZERO, share), {"prevalence": moved})


def _crosswise(p: Numbers) -> Channel:
    """Report 1 means "both or neither" of the statement and another that holds with probability p."""
    return Channel(_yes_no(1 - p["p"], p["p"]))


def _triangular(p: Numbers) -> Channel:
    """Report 1 means "at least one of the two", without revealing which."""
    return Channel(_yes_no(p["p"], ONE))


def _kuk(p: Numbers) -> Channel:
    """Respondents draw from their answer's deck; report j is the number of red cards among `cards` draws."""
    cards = int(p.get("cards", ONE))
    return Channel((_binomial(cards, p["no"]), _binomial(cards, p["yes"])))


def _binomial(count: int, chance: Fraction) -> Row:
    weights = [comb(count, k) * chance**k * (1 - chance) ** (count - k) for k in range(count + 1)]
    return tuple(weights)


def _mangat(p: Numbers) -> Channel:
    """People with the trait say yes; the others say yes with probability 1 − p, by Warner's device."""
    return Channel(_yes_no(1 - p["p"], ONE))


def _lie_detector(p: Numbers) -> Channel:
    """Mangat's design in which only a share t of people with the trait say yes, and the others no."""
    moved: Rows = ((ZERO, ZERO), (-ONE, ONE))
    return Channel(_yes_no(1 - p["p"], ZERO), {"t": moved})


def _cheater_detection(p: Numbers) -> Channel:
    """People without the trait are forced to say yes with p; cheaters say no whatever the device shows."""
    return Channel((*_yes_no(p["p"], ONE), (ONE, ZERO)))


NAMED: Mapping[str, Named] = {
    "warner": Named(("p",), _warner, "with p the statement, else its opposite"),
    "mirrored": Named(("p",), _warner, "with p the statement, else its opposite"),
    "disguised": Named(("p",), _warner, "a red card has p in the stack of yes and 1 − p in the stack of no"),
    "forced": Named(("yes", "no"), _forced, "with `yes` forced to say yes, with `no` to say no, else true"),
    "unrelated": Named(("p",), _unrelated, "with p the question, else another one", ("prevalence",)),
    "crosswise": Named(("p",), _crosswise, "1: both or neither; the other statement holds with p"),
    "triangular": Named(("p",), _triangular, "1: at least one; the other statement holds with p"),
    "kuk": Named(("yes", "no"), _kuk, "the red cards drawn from one's own deck", ("cards",)),
    "mangat": Named(("p",), _mangat, "with the trait yes; without it no with p, else yes"),
    "stochastic_lie_detector": Named(
        ("p",), _lie_detector, "with the trait yes with a share t; without it no with p, else yes"
    ),
    "cheater_detection": Named(
        ("p",), _cheater_detection, "without the trait forced to say yes with p; cheaters say no",
        answers=("no", "yes", "cheater"),
    ),
}  # fmt: skip
