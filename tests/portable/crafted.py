"""Byte streams that lead the samplers where random ones hardly ever go."""

import struct
from collections.abc import Iterator

from ldp_client.core.strips import (
    CELL_BITS,
    COLUMN_BITS,
    CURVE_BITS,
    POINT_BITS,
    STRIP_BITS,
    STRIPS,
    Strips,
)
from tests.portable.stream import Stream

LAST_STRIP = STRIPS - 1
DIGITS = 64
ROUNDS = 3


def word_for(strips: Strips, strip: int, height: int) -> int:
    """The 64-bit word that picks this strip and this height of it."""
    if height < strips.threshold[strip] and strips.start[strip] == 0:
        return strip << COLUMN_BITS | height
    for column in range(STRIPS):
        rest = height - strips.other_start[column]
        if strips.other[column] == strip and strips.threshold[column] <= rest < 1 << COLUMN_BITS:
            return column << COLUMN_BITS | rest
    raise ValueError("no word picks this height")


def undecided(strips: Strips, strip: int, kept: bool) -> "tuple[int, int, bytes]":
    """A word, a point and further digits whose height follows the curve for ROUNDS comparisons.

    kept: on which side of the curve it ends.
    """
    more = DIGITS * ROUNDS
    point = int.from_bytes(Stream(b"", f"point {strip}").read(4 + more // 8), "big") >> 1
    place = (strip << POINT_BITS + more | point) + kept
    exact = strips._low(place, STRIP_BITS + POINT_BITS + more, CURVE_BITS + more)
    height = strips.scale * exact // strips.total
    extra = b"".join(
        _digits(height, place) + _digits(point, place) for place in range(more - DIGITS, -1, -DIGITS)
    )
    return word_for(strips, strip, height >> more), point >> more << 1, extra


def _digits(value: int, place: int) -> bytes:
    return (value >> place & (1 << DIGITS) - 1).to_bytes(DIGITS // 8, "big")


def one_draw(word: int, point: int, extra: bytes = b"") -> bytes:
    """The bytes that one draw reads."""
    return struct.pack("<QI", word, point) + extra


def many_draws(count: int, word: int, point: int, extra: bytes, seed: str) -> bytes:
    """The bytes that `count` draws read, the first of them with this word, point and digits.

    The other draws are kept at once: their height is 0.
    """
    chooser = Stream(b"", seed)
    words = [word] + [chooser.read(1)[0] << COLUMN_BITS for _ in range(count - 1)]
    points = [point] + [int.from_bytes(chooser.read(4), "big") for _ in range(count - 1)]
    return struct.pack(f"<{count}Q{count}I", *words, *points) + extra


def tail_word(strips: Strips) -> int:
    """A word for the lowest height of the last strip, which stands for the whole tail."""
    return word_for(strips, LAST_STRIP, 0)


def tail_curve(strips: Strips) -> int:
    """The height of Laplace's curve over its tail, rounded down: only this height needs more digits."""
    curve = strips._low(LAST_STRIP << POINT_BITS, STRIP_BITS + POINT_BITS, CURVE_BITS)
    return (strips.scale * curve << STRIP_BITS) // strips.total


def rejected_word(strips: Strips, strip: int) -> int:
    """A word for the greatest height of a strip, above the curve nearly everywhere in it."""
    return max(_words_of(strips, strip))[1]


def _words_of(strips: Strips, strip: int) -> "Iterator[tuple[int, int]]":
    capacity = 1 << COLUMN_BITS
    if strips.threshold[strip]:
        yield strips.threshold[strip] - 1, strip << COLUMN_BITS | strips.threshold[strip] - 1
    for column in range(STRIPS):
        if strips.other[column] == strip and strips.threshold[column] < capacity:
            yield capacity - 1 + strips.other_start[column], (column + 1 << COLUMN_BITS) - 1


def saturating_tails() -> int:
    """How many tails in a row carry a Laplace draw beyond 32 bits."""
    return (1 << 31) // (LAST_STRIP << CELL_BITS) + 1
