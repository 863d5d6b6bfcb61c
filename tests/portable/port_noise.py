"""Exact noise and what it hides, as docs/payloads.md describes them: for port_from_page.py."""

import struct
from decimal import Decimal, getcontext
from fractions import Fraction
from functools import cache
from math import isqrt

getcontext().prec = 300
UNIT = 1 << 20
STRIPS = 512
COLUMN = 1 << 55
PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798"
    "214808651328230664709384460955058223172535940812848111745028410270193852110555964462294895493038196442881"
    "0975665933446128475648233786783165271201909145648566923460348610454326648213393607260249141273724587"
)


class RefusedError(Exception):
    """An answer that is none; its text: the field."""


def exp(power):
    """e to a Fraction or a decimal text."""
    power = Fraction(power)
    return Fraction((Decimal(power.numerator) / Decimal(power.denominator)).exp())


class Strips:
    """The strip table of exp(-curve(x)): `tail` where its last strip is all the rest."""

    def __init__(self, curve, tail):
        self.curve, self.tail = curve, tail
        upper = [int(self.height(Fraction(edge, 32)) * 2**96) + 1 for edge in range(STRIPS)]
        if tail:
            upper[-1] *= 32
        self.scale = Fraction(2**64 - STRIPS, sum(upper))
        weights = [int(self.scale * one) + 1 for one in upper]
        weights[0] += 2**64 - sum(weights)
        self.share_out(weights)

    def height(self, x):
        return exp(-self.curve(x))

    def share_out(self, left):
        self.limit, self.other, self.above = [COLUMN] * STRIPS, list(range(STRIPS)), [0] * STRIPS
        small = [strip for strip in range(STRIPS) if left[strip] < COLUMN]
        large = [strip for strip in range(STRIPS) if left[strip] >= COLUMN]
        while small:
            column, giver = small.pop(), large[-1]
            self.limit[column], self.other[column] = left[column], giver
            left[giver] -= COLUMN - left[column]
            self.above[column] = left[giver] - left[column]
            if left[giver] < COLUMN:
                small.append(large.pop())

    def under(self, strip, point, height, random):
        """Whether the height is under the curve; more digits until that is certain."""
        bits, digits = 0, 31
        last = self.tail and strip == STRIPS - 1
        while True:
            low = high = Fraction(strip, 32)
            if not last:
                low += Fraction(point, 2 ** (digits + 5))
                high = low + Fraction(1, 2 ** (digits + 5))
            most = self.scale * 2**96 * (32 if last else 1)
            if Fraction(height + 1, 2**bits) <= most * self.height(high):
                return True
            if Fraction(height, 2**bits) >= most * self.height(low):
                return False
            height, bits = height << 64 | int.from_bytes(random.read(8), "big"), bits + 64
            if not last:
                point, digits = point << 64 | int.from_bytes(random.read(8), "big"), digits + 64

    def draw(self, word, point, random):
        base = 0
        while True:
            column, height = word >> 55, word % COLUMN
            strip = column
            if height >= self.limit[column]:
                strip, height = self.other[column], height + self.above[column]
            if self.under(strip, point >> 1, height, random):
                base += strip << 15
                if not (self.tail and strip == STRIPS - 1):
                    magnitude = base + ((point >> 16) + 1 >> 1)
                    return -magnitude if point & 1 else magnitude
            word, point = struct.unpack("<QI", random.read(12))

    def draws(self, count, random):
        read = struct.unpack(f"<{count}Q{count}I", random.read(12 * count))
        return [self.draw(read[place], read[count + place], random) for place in range(count)]


TABLES = {}


def noise(law, count, random):
    if not TABLES:
        TABLES["laplace"] = Strips(lambda x: x, tail=True)
        TABLES["normal"] = Strips(lambda x: x * x / 2, tail=False)
    return TABLES[law].draws(count, random)


def normal_below(x):
    """Φ of a Decimal."""
    if abs(x) > 24:
        return Decimal(x > 0)
    total = term = abs(x)
    odd = 1
    while term > Decimal(10) ** -280:
        odd += 2
        term = term * x * x / odd
        total += term
    mass = total * (-x * x / 2).exp() / (2 * PI).sqrt()
    return Decimal("0.5") + (mass if x > 0 else -mass)


@cache
def hidden_radius(epsilon, delta, size):
    """The largest whole distance, in 2**-20, that normal noise on so many coordinates hides."""
    epsilon, delta = (Decimal(one.numerator) / Decimal(one.denominator) for one in (epsilon, delta))
    growth = epsilon.exp()
    cut = size * (1 + growth) / Decimal(2) ** 188
    low, high = 0, 64 * UNIT
    while low < high:
        middle = (low + high + 1) // 2
        mu = Decimal(middle) / UNIT
        lost = normal_below(mu / 2 - epsilon / mu) - growth * normal_below(-mu / 2 - epsilon / mu)
        low, high = (middle, high) if lost + cut <= delta else (low, middle - 1)
    return low


def number(value, path):
    """A float; what is no number is refused."""
    if type(value) not in (int, float):
        raise RefusedError(path)
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def place(value, bounds, levels, path):
    value, low, high = number(value, path), float(bounds[0]), float(bounds[1])
    share = 1.0 if value >= high else 0.0 if value <= low else (value - low) / (high - low)
    return min(int(share * levels + 0.5), levels)


def signed(values):
    top = 2**31 - 1
    return b"".join(min(max(value, -top), top).to_bytes(4, "big", signed=True) for value in values)


def clipped(vector, radius):
    """The vector, no longer than the radius; entries towards 0."""
    square = sum(entry * entry for entry in vector)
    length = max(isqrt(max(square, 1) - 1) + 1, radius)
    return [entry * radius // length if entry >= 0 else -(-entry * radius // length) for entry in vector]
