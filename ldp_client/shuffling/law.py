"""What a payload says for one answer and against another: the pair of answers that it tells apart best."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

from ldp_client.shuffling.lattice import MASS_BITS, Atom
from ldp_client.shuffling.slots import VALUE_BITS

# Of a probability that is added up.
ALONE_BITS = 128
# More kinds of payload than these are no longer told apart.
MOST_KINDS = 2000
Kind = tuple[Fraction, Fraction, Fraction]


class Law:
    """The kinds of payload of a mechanism, for the two answers that it tells apart best.

    Args:
        growth: at least the largest ratio of a payload's probabilities, e^ε₀.
        kinds: (A, B, mass) of each kind: every answer sends such a payload at least with probability `mass`,
            the one answer with A · mass, the other with B · mass.
        is_beside: whether it is the worst law also of one answer among several in a report (METHODS 1.6).

    Attributes:
        growth: as given.
        kinds: as given.
        is_beside: as given.
        covered: how likely a report is one that every answer may send as well.
    """

    def __init__(self, growth: Fraction, kinds: Sequence[Kind], is_beside: bool = False) -> None:
        self.growth = growth
        self.kinds = tuple(kinds)
        self.is_beside = is_beside
        self.covered = sum(float(mass) for *_, mass in self.kinds)

    def atoms(self, ratio: Fraction) -> list[Atom]:
        """The law of A − ratio · B, rounded up, without what is 0 (see `slots.py`)."""
        atoms = []
        for one, other, mass in self.kinds:
            value = _up((one - ratio * other) * (1 << VALUE_BITS))
            scaled = mass * (1 << MASS_BITS)
            weight = _up(scaled) if value > 0 else scaled.numerator // scaled.denominator
            if value and weight:
                atoms.append((weight, value))
        return atoms

    def alone(self, ratio: Fraction) -> Fraction:
        """The δ of one report by itself, rounded up, which with others in the set is not larger."""
        terms = [mass * (one - ratio * other) for one, other, mass in self.kinds]
        excess = sum(_up(term * (1 << ALONE_BITS)) for term in terms if term > 0)
        return min(Fraction(1), Fraction(excess, 1 << ALONE_BITS))


def _up(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)


def any_law(growth: Fraction) -> Law:
    """The worst law of all mechanisms whose payloads' probabilities differ at most `growth` times.

    It is randomized response of two choices (METHODS 1.6).
    """
    return bounded_law(growth, Fraction(1))


def bounded_law(growth: Fraction, variation: Fraction) -> Law:
    """The worst law where two answers' payloads differ at most by `variation`, in total variation."""
    most = (growth - 1) / (growth + 1)
    if growth <= 1:
        return Law(Fraction(1), [])
    share = min(variation, most) / (growth - 1)
    return _law(growth, share, (1 - (growth + 1) * share) / growth, Fraction(0))


def choice_law(growth: Fraction, difference: Fraction, both: Fraction) -> Law:
    """That of a mechanism which sends a set of choices, c·e^ε₀ likely if the answer is in it, else c.

    Args:
        growth: e^ε₀.
        difference: p − q, how much likelier the set contains the answer than another choice.
        both: the probability that it contains both.

    Returns:
        The law.
    """
    if growth <= 1:
        return Law(Fraction(1), [])
    share = difference / (growth - 1)
    return _law(growth, share, both / growth, 1 - (growth + 1) * share - both, is_beside=True)


def _law(
    growth: Fraction, share: Fraction, both: Fraction, neither: Fraction, is_beside: bool = False
) -> Law:
    one = Fraction(1)
    kinds = [(growth, one, share), (one, growth, share), (growth, growth, both), (one, one, neither)]
    return Law(growth, [kind for kind in kinds if kind[2] > 0], is_beside)


def together(laws: Sequence[Law]) -> Law:
    """That of a report with the payloads of several independent answers, which may differ in all of them.

    Where the worst law of one of them alone need not be the worst beside others, it is the general one.
    """
    if len(laws) == 1:
        return laws[0]
    if not all(law.is_beside for law in laws):
        return any_law(_growth(laws))
    whole = Law(Fraction(1), [(Fraction(1), Fraction(1), Fraction(1))], is_beside=True)
    for law in laws:
        if len(whole.kinds) * len(law.kinds) > MOST_KINDS:
            return any_law(_growth(laws))
        merged: dict[tuple[Fraction, Fraction], Fraction] = {}
        for one, other, mass in whole.kinds:
            for a, b, weight in law.kinds:
                pair = (one * a, other * b)
                merged[pair] = merged.get(pair, Fraction(0)) + mass * weight
        kinds = [(*pair, mass) for pair, mass in merged.items()]
        whole = Law(whole.growth * law.growth, kinds, is_beside=True)
    return whole


def _growth(laws: Sequence[Law]) -> Fraction:
    """Of all that they tell together."""
    return prod((law.growth for law in laws), start=Fraction(1))


def one_of(laws: Sequence[Law]) -> Law:
    """That of a report with one of several payloads, drawn evenly whatever the answers are, and named."""
    count = len(laws)
    kinds = [(one, other, mass / count) for law in laws for one, other, mass in law.kinds]
    return Law(max(law.growth for law in laws), kinds, all(law.is_beside for law in laws))
