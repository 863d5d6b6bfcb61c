"""What two arms could have said otherwise: by the law of the reports, however few they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inference.analyses.few_reports import Lacking
from inference.analyses.table import Codes, Private, Values

# So many surveys of people who agree are drawn at a time; in all so many times one that is called apart.
SURVEYS, BEYOND = 20_000, 2.0
# Shares (answers,), their covariance, and what each variance lacks.
Part = tuple[Values, NDArray[np.float64], list[Lacking]]


@dataclass(frozen=True)
class Arm:
    """One arm as it could have come out otherwise.

    shares: (answers,) as its reports say them; covariance: theirs. known: of each part of the channel the
    share and number of its reports, and P(report | answer), where each shows one thing. others: the
    covariance of the mean of the rest.
    """

    shares: Values
    covariance: Values
    known: tuple[tuple[float, int, Values], ...]
    others: Values

    @classmethod
    def of(
        cls,
        column: Private,
        counts: Codes,
        scores: Values,
        inside: NDArray[np.bool_],
        part: Part,
    ) -> Arm:
        """Of the rows inside, and what is estimated of them."""
        looks = column.looks
        assert looks is not None
        shares, covariance, lacks = part
        parts = looks.part[column.codes[inside]]
        own, n = counts[inside].astype(np.float64), float(counts[inside].sum())
        others = ~looks.exclusive_parts[parts]
        left = scores[inside][others] - shares
        known = [
            (own[parts == at].sum() / n, int(own[parts == at].sum()), looks.chances[at])
            for at in np.unique(parts)
            if looks.exclusive_parts[at]
        ]
        spread = (own[others, None] * left).T @ left / n**2
        return cls(shares, covariance + np.diag([one.extra for one in lacks]), tuple(known), spread)

    def drawn(self, shares: Values, random: np.random.Generator) -> Values:
        """What it would say of people with these shares, (surveys, answers) both."""
        found = np.zeros_like(shares)
        for share, many, chances in self.known:
            said = random.multinomial(many, _shares(shares @ chances))
            found += share * (said @ np.linalg.pinv(chances) / many - shares)
        return shares + found + random.standard_normal(shares.shape) @ _root(self.others)


class Pair(NamedTuple):
    """Both arms of a group of people. moved: (answers,) paper − devices, beyond what is expected."""

    arms: Sequence[Arm]
    moved: Values
    expected: Values


def seldom(pairs: Sequence[Pair], alarm: float) -> bool:
    """Whether arms of people who agree differ by as much, in all groups together, more seldom than `alarm`.

    So many surveys are drawn that it can be told, however seldom that is.
    """
    random, times = np.random.default_rng(0), int(np.ceil(max(BEYOND / alarm / SURVEYS, 1)))
    turned: list[Values] = []
    as_far = 0
    for _ in range(times):
        apart = [_apart(pair, random) for pair in pairs]
        # Shares add up to 1: one of them says nothing beside the others.
        turned = turned or [np.linalg.pinv(np.atleast_2d(np.cov(one, rowvar=False))) for one in apart]
        far = sum(np.einsum("si,ij,sj->s", one, own, one) for one, own in zip(apart, turned, strict=True))
        seen = sum(pair.moved[1:] @ own @ pair.moved[1:] for pair, own in zip(pairs, turned, strict=True))
        as_far += int(np.sum(far >= seen * (1 - 1e-9)))
        if 1 + as_far >= alarm * (1 + times * SURVEYS):
            return False
    return True


def _apart(pair: Pair, random: np.random.Generator) -> Values:
    """(surveys, answers but the first): differences of arms of people who agree, beyond what is expected.

    The people's shares are those of both arms, drawn as uncertain as they are.
    """
    arms, expected = pair.arms, pair.expected
    sure = np.asarray([1 / max(float(np.trace(one.covariance)), np.finfo(float).tiny) for one in arms])
    sure = sure / sure.sum()
    centre = _shares(sure[0] * arms[0].shares + sure[1] * (arms[1].shares - expected))
    spread = sum(part**2 * one.covariance for part, one in zip(sure, arms, strict=True))
    shares = _shares(np.abs(centre + random.standard_normal((SURVEYS, len(centre))) @ _root(spread)))
    devices = arms[0].drawn(shares, random)
    on_paper = _shares(shares + expected)
    return np.asarray((arms[1].drawn(on_paper, random) - devices - (on_paper - shares))[:, 1:])


def _shares(values: Values) -> Values:
    """Values as shares that add up to 1."""
    inside = np.maximum(values, 0)
    return np.asarray(inside / inside.sum(axis=-1, keepdims=True))


def _root(covariance: Values) -> Values:
    """A matrix that gives normal numbers this covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0))).T)
