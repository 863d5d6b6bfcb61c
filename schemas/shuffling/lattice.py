"""Bound E[(X₁ + … + Xₙ)₊] / n from above, for independent X of one finite law, in integers.

X compares a payload y under two answers: X = (P(y) − e^ε·Q(y)) / Ω(y), where every answer sends y with
probability at least Ω(y). X is 0 with the remaining probability (METHODS 1.6). The sum's law is kept on a
lattice. Mass between two lattice points is split over both, which keeps its mean. That spreads the law, which
raises the expectation. The law for twice as many people is the square of a polynomial, one product of long
integers. If the law has too many points, every second point is split over its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

# (probability over 2**MASS_BITS, X over 2**VALUE_BITS), X not 0
Atom = tuple[int, int]

MASS_BITS = 64
VALUE_BITS = 64
# Bits of probabilities in this module.
WORK_BITS = 112
MOST_POINTS = 700
FIRST_POINTS = 1024
# Mass that is cut off above counts at the largest value, so little is cut there. Mass that is cut off below
# moves up to the least remaining point.
TOP_CUT = 1 << (WORK_BITS - 90)
BOTTOM_CUT = 1 << (WORK_BITS - 40)
# Leading binary digits of the number of people that count: a bound for fewer people also holds for more.
DIGITS = 12


def expected_excess(atoms: Sequence[Atom], people: int) -> Fraction:
    """Return an upper bound on E[(X₁ + … + Xₙ)₊] / n.

    Args:
        atoms: the law of X, without its zero.
        people: n, at least 1.

    Returns:
        The bound.
    """
    best = max([value for _, value in atoms], default=0)
    if best <= 0:
        return Fraction(0)
    spare = max(0, people.bit_length() - DIGITS)
    count = people >> spare << spare
    one = _first(atoms)
    total = one
    for digit in bin(count)[3:]:
        total = total.plus(total)
        if digit == "1":
            total = total.plus(one)
    excess = sum(mass * place for place, mass in enumerate(total.masses, total.first) if place > 0)
    return Fraction(excess * total.step + total.lost * best * count, count << (WORK_BITS + VALUE_BITS))


class _Sum:
    """The law of a sum: masses over 2**WORK_BITS at first × step, (first + 1) × step and so on.

    lost: an upper bound on the probability that was cut off above.
    """

    def __init__(self, first: int, masses: list[int], step: int, lost: int) -> None:
        self.first, self.masses, self.step, self.lost = first, masses, step, lost

    def folded(self) -> _Sum:
        """Return the law on every second point of the lattice."""
        start = self.first >> 1
        masses = [0] * ((self.first + len(self.masses)) // 2 + 1 - start)
        for place, mass in enumerate(self.masses, self.first):
            half, odd = (place >> 1) - start, place & 1
            if odd:
                masses[half] += mass + 1 >> 1
                masses[half + 1] += mass + 1 >> 1
            else:
                masses[half] += mass
        return _Sum(start, masses, 2 * self.step, self.lost)

    def cut(self) -> _Sum:
        """Return the law without its ends of negligible mass."""
        top, above = len(self.masses), 0
        while top > 1 and above + self.masses[top - 1] <= TOP_CUT:
            top -= 1
            above += self.masses[top]
        bottom, below = 0, 0
        while bottom < top - 1 and below + self.masses[bottom] <= BOTTOM_CUT:
            below += self.masses[bottom]
            bottom += 1
        masses = self.masses[bottom:top]
        masses[0] += below
        found = _Sum(self.first + bottom, masses, self.step, self.lost + above)
        while len(found.masses) > MOST_POINTS:
            found = found.folded()
        return found

    def plus(self, other: _Sum) -> _Sum:
        """Return the law of the sum of both, on this law's lattice, which is at least as coarse."""
        while other.step < self.step:
            other = other.folded()
        # The coefficients of a product of polynomials, by one product of integers that pack them.
        bits = max(self.masses).bit_length() + max(other.masses).bit_length()
        size = (bits + len(self.masses).bit_length()) // 8 + 1
        count = len(self.masses) + len(other.masses) - 1
        digits = (_packed(self.masses, size) * _packed(other.masses, size)).to_bytes(size * count, "little")
        products = [int.from_bytes(digits[at : at + size], "little") for at in range(0, size * count, size)]
        masses = [product + (1 << WORK_BITS) - 1 >> WORK_BITS for product in products]
        return _Sum(self.first + other.first, masses, self.step, self.lost + other.lost).cut()


def _packed(masses: list[int], size: int) -> int:
    return int.from_bytes(b"".join(mass.to_bytes(size, "little") for mass in masses), "little")


def _first(atoms: Sequence[Atom]) -> _Sum:
    """Return the law of X. The lattice is fine enough that splitting hardly widens it, if points suffice."""
    values = [value for _, value in atoms]
    squares = sum(mass * value * value for mass, value in atoms)
    sizes = sum(mass * abs(value) for mass, value in atoms)
    widest = max(values) - min(values)
    step = max(widest // FIRST_POINTS, min(widest // 64, squares // (sizes << 6))) + 1
    first = min(0, min(values) // step)
    masses = [0] * (max(values) // step + 2 - first)
    shift = WORK_BITS - MASS_BITS
    for mass, value in [*atoms, (max(0, (1 << MASS_BITS) - sum(mass for mass, _ in atoms)), 0)]:
        place, part = divmod(value, step)
        upper = -(-(mass << shift) * part // step)
        masses[place - first] += (mass << shift) - upper + 1
        masses[place - first + 1] += upper
    return _Sum(first, masses, step, 0)
