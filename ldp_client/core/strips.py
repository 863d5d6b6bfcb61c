"""Exactly rounded normal and Laplace noise from random bytes, in integers only.

Strips 1/32 wide cover a half-normal (or exponential) density f. An exact alias table draws a strip by its
integer weight, an upper bound of M·f there. Then a point of the strip is kept with probability
M·f(x) / weight. One 64-bit word picks both the strip and the height of the test. One comparison with the
strip's lowest f keeps 97.5 % of draws. The others compare with an integer exponential of bounded error, and
take 64 more random digits of the point and the height until the result is certain. The result is
round(2**20 · X). The only approximation is the stated truncation of the normal at 16.
"""

import struct
from collections.abc import Callable
from functools import cache

from ldp_client.core.integers import exp_bounds
from ldp_client.core.noise_levels import NOISE_BITS
from ldp_client.core.randomness import Source, random_bits, read

STRIP_BITS = 5
STRIPS_BITS = 9
STRIPS = 1 << STRIPS_BITS
TOTAL_BITS = 64
COLUMN_BITS = TOTAL_BITS - STRIPS_BITS
POINT_BITS = 31
CURVE_BITS = 96
DRAW_BYTES = 12
# A strip is 2**CELL_BITS grid units wide.
CELL_BITS = NOISE_BITS - STRIP_BITS
# Beyond ±16 sd the sampled normal has no mass; rounding adds at most 1.
NOISE_REACH = (16 << NOISE_BITS) + 1


class Strips:
    """The strip table of one density exp(−curve(x)) on [0, 16), and draws from it.

    curve: (point, point_bits, bits) -> floor(2**bits × curve(point / 2**point_bits)).
    tail: whether the last strip covers the whole tail of an exponential instead.
    """

    def __init__(self, curve: Callable[[int, int, int], int], tail: bool) -> None:
        self.curve = curve
        self.tail = tail
        # 1. Integer weights that sum to 2**TOTAL_BITS, and the heights certainly under the curve.
        upper = [self.above(edge, STRIP_BITS, CURVE_BITS) for edge in range(STRIPS)]
        lower = [self._low(edge, STRIP_BITS, CURVE_BITS) for edge in range(1, STRIPS + 1)]
        if tail:
            upper[-1] <<= STRIP_BITS
        # M is scale / total per unit of 2**CURVE_BITS × f.
        self.total = sum(upper)
        self.scale = (1 << TOTAL_BITS) - STRIPS
        self.sure = [self.scale * height // self.total for height in lower]
        if tail:
            self.sure[-1] = 0
        left = [self.scale * height // self.total + 1 for height in upper]
        left[0] += (1 << TOTAL_BITS) - sum(left)
        # 2. Walker's exact alias table: every column holds 2**COLUMN_BITS of one or two strips. In column c
        # a word below threshold[c] means strip c, else strip other[c]. Adding start[c] or other_start[c]
        # gives its height. Each height of a strip occurs once over all columns.
        capacity = 1 << COLUMN_BITS
        self.threshold = [capacity] * STRIPS
        self.other = list(range(STRIPS))
        self.start = [0] * STRIPS
        self.other_start = [0] * STRIPS
        small = [strip for strip in range(STRIPS) if left[strip] < capacity]
        large = [strip for strip in range(STRIPS) if left[strip] >= capacity]
        while small:
            column = small.pop()
            giver = large[-1]
            self.threshold[column] = left[column]
            self.other[column] = giver
            left[giver] -= capacity - left[column]
            # The giver keeps heights 0..left and gives the part just above.
            self.other_start[column] = left[giver] - left[column]
            if left[giver] < capacity:
                small.append(large.pop())

    def _low(self, point: int, point_bits: int, bits: int) -> int:
        """Bound 2**bits × exp(−curve) from below."""
        return exp_bounds(-self.curve(point, point_bits, bits) - 1, bits)[0]

    def above(self, point: int, point_bits: int, bits: int) -> int:
        """Bound 2**bits × exp(−curve) from above."""
        return exp_bounds(-self.curve(point, point_bits, bits), bits)[1]

    def draw(self, count: int, random: Source) -> list[int]:
        """Draw `count` independent signed integers round(2**NOISE_BITS × X)."""
        words = struct.unpack(f"<{count}Q{count}I", read(random, DRAW_BYTES * count))
        return [self.draw_from(words[i], words[count + i], random) for i in range(count)]

    def draw_from(self, word: int, point: int, random: Source) -> int:
        """Make one draw that begins with these random digits and reads more if it needs them."""
        base = 0
        while True:
            column = word >> COLUMN_BITS
            height = word & ((1 << COLUMN_BITS) - 1)
            if height < self.threshold[column]:
                strip = column
            else:
                strip = self.other[column]
                height += self.other_start[column]
            if height < self.sure[strip] or self._under_curve(strip, point >> 1, height, random):
                if not (self.tail and strip == STRIPS - 1):
                    # The point's top CELL_BITS + 1 bits, rounded to CELL_BITS.
                    offset = ((point >> (POINT_BITS - CELL_BITS)) + 1) >> 1
                    magnitude = base + (strip << CELL_BITS) + offset
                    return -magnitude if point & 1 else magnitude
                base += strip << CELL_BITS
            word, point = struct.unpack("<QI", read(random, DRAW_BYTES))

    def _under_curve(self, strip: int, point: int, height: int, random: Source) -> bool:
        """Return True if height + [0, 1) is under M·f at strip + point, drawing more digits until certain."""
        in_tail = self.tail and strip == STRIPS - 1
        stretch = STRIP_BITS if in_tail else 0
        low_point = high_point = strip << POINT_BITS
        if not in_tail:
            low_point |= point
            high_point = low_point + 1
        point_bits = STRIP_BITS + POINT_BITS
        bits = CURVE_BITS
        while True:
            if (height + 1) * self.total <= self.scale * self._low(high_point, point_bits, bits) << stretch:
                return True
            if height * self.total >= self.scale * self.above(low_point, point_bits, bits) << stretch:
                return False
            height = (height << 64) | random_bits(64, random)
            bits += 64
            if not in_tail:
                low_point = (low_point << 64) | random_bits(64, random)
                high_point = low_point + 1
                point_bits += 64


def _half_square(point: int, point_bits: int, bits: int) -> int:
    return ((point * point) << bits) >> (2 * point_bits + 1)


def _identity(point: int, point_bits: int, bits: int) -> int:
    return (point << bits) >> point_bits


@cache
def table_of(law: str) -> Strips:
    """Return the table of the standard "normal" or "laplace", built at first use."""
    return Strips(_identity, tail=True) if law == "laplace" else Strips(_half_square, tail=False)


def normal(count: int, random: Source) -> list[int]:
    """Draw round(2**20 × N(0, 1)) `count` times, with the normal truncated at ±16."""
    return table_of("normal").draw(count, random)


def laplace(count: int, random: Source) -> list[int]:
    """Draw round(2**20 × Laplace(1)) `count` times, untruncated."""
    return table_of("laplace").draw(count, random)
