"""The number behind all bounds in this package: E[(X₁ + … + Xₙ)₊] / n, for independent X of one finite law.

X compares a payload y under two answers: X = (P(y) − e^ε·Q(y)) / Ω(y), where every answer sends y with
probability at least Ω(y). X is 0 with the remaining probability (METHODS 1.6). Every rounding is upward: X to
larger values, probabilities of positive X up, of negative X down.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from math import comb

from ldp_client.shuffling.binomial import ONE, WORK_BITS, Window
from ldp_client.shuffling.lattice import MASS_BITS, Atom, lattice_excess

VALUE_BITS = 64
# If the law of two values has more than this many times the variance, the lattice bound is worth its time.
MOST_WIDENED = Fraction(105, 100)
WHOLE = 1 << MASS_BITS
# At most this many compositions of n reports are added up one by one.
MOST_COMPOSITIONS = 1000


def expected_excess(atoms: Sequence[Atom], people: int) -> tuple[int, int]:
    """Return an upper bound on E[(X₁ + … + Xₙ)₊] / n.

    Args:
        atoms: the law of X, without its zero.
        people: n, at least 1.

    Returns:
        The bound as (numerator, denominator). For few people and atoms it is exact except for the atoms'
        rounding. Otherwise it is the bound of a wider law, on two values or on a lattice.
    """
    if not any(value > 0 for _, value in atoms):
        return 0, 1
    known = _most_people(len(atoms))
    if people <= known:
        return _by_composition(atoms, people)
    wider = _two_sided(atoms)
    bound = _two_sided_excess(wider, people)
    if MOST_WIDENED * _square(atoms) < _square(wider):
        numerator, denominator = lattice_excess(atoms, people)
        bound = min(bound, (numerator, denominator << VALUE_BITS), key=_ratio)
    if not 0 < known < people <= 4 * known:
        return bound
    # More people never reveal more. Just beyond `known`, the exact law of fewer may be the better bound.
    return min(bound, _by_composition(atoms, known), key=_ratio)


def _ratio(pair: tuple[int, int]) -> Fraction:
    return Fraction(*pair)


def _square(atoms: Sequence[Atom]) -> int:
    return sum(mass * value**2 for mass, value in atoms)


def _most_people(kinds: int) -> int:
    people = 0
    while comb(people + 1 + kinds, kinds) <= MOST_COMPOSITIONS:
        people += 1
    return people


def _by_composition(atoms: Sequence[Atom], people: int) -> tuple[int, int]:
    """Return the expectation, summed over how many of the n reports have each value."""
    none = max(0, WHOLE - sum(mass for mass, _ in atoms))
    total = 0
    for left, weight, value in _compositions(list(atoms), people):
        if value > 0:
            total += weight * none**left * value
    return total, people << (MASS_BITS * people + VALUE_BITS)


def _compositions(atoms: list[Atom], people: int) -> Iterator[tuple[int, int, int]]:
    """Yield (how many reports are left, the weight of the others, the sum of their values)."""
    if not atoms:
        yield people, 1, 0
        return
    (mass, value), rest = atoms[0], atoms[1:]
    power = 1
    for count in range(people + 1):
        ways = comb(people, count) * power
        for left, weight, total in _compositions(rest, people - count):
            yield left, ways * weight, total + count * value
        power *= mass


def _two_sided(atoms: Sequence[Atom]) -> tuple[Atom, Atom]:
    """Return a law on the largest value, the least value and 0 that spreads each atom and keeps the mean.

    Spreading raises the expectation of every convex function, including (·)₊.
    """
    best = max(value for _, value in atoms)
    worst = max(-value for _, value in atoms)
    for_it = sum(-(-mass * value // best) for mass, value in atoms if value > 0)
    against = sum(mass * -value // worst for mass, value in atoms if value < 0) if worst > 0 else 0
    return (for_it, best), (against, -worst)


def _two_sided_excess(law: tuple[Atom, Atom], people: int) -> tuple[int, int]:
    """Return the expectation for X of two values and 0.

    Consider one of the n reports. C of the others have a value, K of these the larger value. If k is the
    least K that makes the sum positive, the expectation is the mean over C of
    u·g·P(K ≥ k) − v·h·P(K ≥ k + 1).
    """
    (often, best), (seldom, worst) = law
    gain, loss = often * best, -seldom * worst
    unit = MASS_BITS + VALUE_BITS
    if seldom == 0:
        return gain, 1 << unit
    told = _window(people - 1, often + seldom, max(1, WHOLE - often - seldom))
    total = told.outside * gain
    tails = _tails(often, seldom, best, -worst, told.first, len(told.high))
    for likely, (tail, edge) in zip(told.high, tails, strict=True):
        # gain − loss is the mean of X, 1 − e^ε: it is positive only by rounding.
        total += likely * ((gain - loss) * (tail if gain < loss else ONE) + loss * edge)
    return total, 1 << (unit + 2 * WORK_BITS)


@lru_cache(maxsize=4)
def _window(trials: int, often: int, seldom: int) -> Window:
    # If a law has no third value, the window is the same for each ε.
    return Window(trials, often, seldom)


def _tails(
    often: int, seldom: int, best: int, worst: int, first: int, steps: int
) -> Iterator[tuple[int, int]]:
    """Yield P(K ≥ k) from below and P(K = k) from above, over 2**WORK_BITS, for C = first, first + 1, ….

    K is Binomial(C, often / (often + seldom)). k is the least K whose sum, with one more good report, is
    positive.
    """
    both = often + seldom
    k = (worst * first - best) // (best + worst) + 1
    start = _window(first, often, seldom)
    tail, high = start.from_on(k), start.at_most(k)
    low = start.low[k - start.first] if 0 <= k - start.first < len(start.low) else 0
    for c in range(first, first + steps):
        yield tail, high
        if k:
            tail += low * k * seldom // ((c - k + 1) * both)
        over = (c + 1 - k) * both
        low = low * (c + 1) * seldom // over
        high = -(-high * (c + 1) * seldom // over)
        if (worst * (c + 1) - best) // (best + worst) + 1 > k:
            tail = max(0, tail - high)
            over = (k + 1) * seldom
            low = low * (c + 1 - k) * often // over
            high = -(-high * (c + 1 - k) * often // over)
            k += 1
