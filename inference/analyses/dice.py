"""Designs of randomised answers by name, and what some people do instead: matrices P(report | answer).

Only the respondent sees the dice, spinner or second question. The design defines how they turn answers
into reports.
"""

from collections.abc import Callable, Mapping
from math import comb
from typing import Any, NamedTuple

import numpy as np

from inference.analyses.channel import Channel, mixture, split


class Named(NamedTuple):
    """A named design.

    needs: its probabilities. expand: {member: probability or share} -> channel. words: a description. cards:
    whether it may state their number. shares: optional shares of people, unknown unless they are stated.
    """

    needs: tuple[str, ...]
    expand: Callable[[Mapping[str, Any]], Channel]
    words: str
    cards: bool = False
    shares: tuple[str, ...] = ()


def _yes_no(given_no: Any, given_yes: Any) -> Channel:
    """Return the channel from the probabilities of report 1."""
    return Channel.of([[1 - given_no, given_no], [1 - given_yes, given_yes]])


TRUTH, YES, NO = _yes_no(0, 1), _yes_no(1, 1), _yes_no(0, 0)


def _warner(p: Mapping[str, Any]) -> Channel:
    return _yes_no(1 - p["p"], p["p"])


def _kuk(p: Mapping[str, Any]) -> Channel:
    """Respondents draw from their answer's deck; report j is the number of red cards among `cards` draws."""
    cards = int(p.get("cards", 1))
    draws = range(cards + 1)
    return Channel.of(
        [[comb(cards, k) * p[d] ** k * (1 - p[d]) ** (cards - k) for k in draws] for d in ("no", "yes")]
    )


NAMED: Mapping[str, Named] = {
    "warner": Named(("p",), _warner, "with p the statement, else its opposite"),
    "mirrored": Named(("p",), _warner, "with p the statement, else its opposite"),
    "disguised": Named(("p",), _warner, "a red card has p in the stack of yes and 1 − p in the stack of no"),
    "forced": Named(
        ("yes", "no"),
        lambda p: mixture((YES, NO, TRUTH), (p["yes"], p["no"], 1 - p["yes"] - p["no"])),
        "with `yes` forced to say yes, with `no` to say no, else true",
    ),
    "unrelated": Named(
        ("p",),
        lambda p: split(p["p"], TRUTH, split(p["prevalence"], YES, NO)),
        "with p the question, else another one",
        shares=("prevalence",),
    ),
    "crosswise": Named(("p",), _warner, "1: both or neither; the other statement holds with p"),
    "triangular": Named(
        ("p",), lambda p: _yes_no(p["p"], 1), "1: at least one; the other statement holds with p"
    ),
    "kuk": Named(("yes", "no"), _kuk, "the red cards drawn from one's own deck", cards=True),
    "mangat": Named(
        ("p",), lambda p: _yes_no(1 - p["p"], 1), "with the trait yes; without it no with p, else yes"
    ),
    "stochastic_lie_detector": Named(
        ("p",),
        lambda p: split(p["t"], _yes_no(1 - p["p"], 1), _yes_no(1 - p["p"], 0)),
        "with the trait yes with a share t; without it no with p, else yes",
        shares=("t",),
    ),
    "cheater_detection": Named(
        ("p",),
        lambda p: split(p["cheaters"], NO, _yes_no(p["p"], 1)),
        "without the trait forced to say yes with p; cheaters say no",
        shares=("cheaters",),
    ),
}

# What a share of people do instead of what the dice tell them: they act as if their answer were the first,
# give the first report, or any report. Each is a share of those not named after it.
BEHAVIOURS: Mapping[str, Callable[[Channel], Channel]] = {
    "denial": lambda dice: dice.reordered([0] * dice.shape[0]),
    "no_saying": lambda dice: Channel.of(np.tile(np.eye(dice.shape[1])[0], (dice.shape[0], 1))),
    "random": lambda dice: Channel.of(np.full(dice.shape, 1 / dice.shape[1])),
}
