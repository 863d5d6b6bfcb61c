"""Shuffled reports by brute force, in fractions: every set of payloads with its probability."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import comb

Payloads = Sequence[Fraction]
Sets = Mapping[tuple[int, ...], Fraction]


def sets_of(laws: Iterable[Payloads]) -> Sets:
    """How likely each count of payloads is, of one report by each law."""
    sets: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
    for law in laws:
        grown: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for counts, chance in sets.items():
            counts = counts or (0,) * len(law)
            for payload, likely in enumerate(law):
                if likely:
                    one_more = (*counts[:payload], counts[payload] + 1, *counts[payload + 1 :])
                    grown[one_more] += chance * likely
        sets = grown
    return sets


def divergence(one: Sets, other: Sets, ratio: Fraction) -> Fraction:
    """The δ that goes with e^ε = ratio, exactly."""
    zero = Fraction(0)
    return sum((max(zero, chance - ratio * other.get(counts, zero)) for counts, chance in one.items()), zero)


def response(growth: Fraction, choices: int, answer: int) -> list[Fraction]:
    """Randomized response's payloads."""
    weights = [growth if payload == answer else Fraction(1) for payload in range(choices)]
    return [weight / sum(weights) for weight in weights]


def dominating(laws: Sequence[Payloads], pair: tuple[int, int], people: int, ratio: Fraction) -> Fraction:
    """The δ where it is told which of the other reports had to be sent whatever their answers are.

    laws: of every answer. pair: the two answers of the person that is looked at.
    """
    least = [min(column) for column in zip(*laws, strict=True)]
    share = sum(least)
    blanket = [weight / share for weight in least]
    total = Fraction(0)
    for hidden in range(people):
        chance = comb(people - 1, hidden) * share**hidden * (1 - share) ** (people - 1 - hidden)
        one, other = (sets_of([laws[answer], *[blanket] * hidden]) for answer in pair)
        total += chance * divergence(one, other, ratio)
    return total
