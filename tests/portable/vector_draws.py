"""One draw of a vector file, and the random bytes that samplers do not meet by chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ldp_client.core.strips import Strips, _half_square, _identity
from tests.portable import crafted

SEEDS = ("a", "b")
UNDECIDED = ((0, False), (0, True), (17, True), (100, False))
# A height of Laplace's tail in the upper half of its curve, and a draw of 8 units from the lowest strip.
UPPER_HALF = 0x17039871521
EIGHT_UNITS = crafted.one_draw(0, 1 << 20)
LAPLACE_STRIPS = Strips(_identity, tail=True)
NORMAL_STRIPS = Strips(_half_square, tail=False)


def draw(study: str, answer: Any, seed: str, head: bytes = b"") -> dict[str, Any]:
    """An entry of a file's draws. head: bytes in front of the stream that the seed gives."""
    entry = {"study": study, "answer": answer, "seed": seed}
    return {**entry, "head": head.hex()} if head else entry


def normal_heads() -> Iterator[bytes]:
    for strip, kept in UNDECIDED:
        yield crafted.one_draw(*crafted.undecided(NORMAL_STRIPS, strip, kept))
    for word in (crafted.rejected_word(NORMAL_STRIPS, 40), crafted.tail_word(NORMAL_STRIPS)):
        yield crafted.one_draw(word, 0xFFFFFFFF)
    yield bytes(12)
    yield b"\xff" * 12


def laplace_heads() -> Iterator[bytes]:
    strips = LAPLACE_STRIPS
    for strip, kept in UNDECIDED:
        yield crafted.one_draw(*crafted.undecided(strips, strip, kept))
    tail = crafted.tail_word(strips)
    for tails in (1, 2, crafted.saturating_tails()):
        yield crafted.one_draw(tail, 0) * tails + crafted.one_draw(5 << 55, 0)
        yield crafted.one_draw(tail, 1) * tails + crafted.one_draw(5 << 55, 1)
    for strip in (0, 40):
        yield crafted.one_draw(crafted.rejected_word(strips, strip), 0xFFFFFFFF)
    yield bytes(12)
    yield b"\xff" * 12
    # The tail's curve is 32 times as high as at the strip's edge: half of it is still inside.
    curve = crafted.tail_curve(strips)
    rest = 0xFFFFFFFE
    yield crafted.one_draw(crafted.word_for(strips, crafted.LAST_STRIP, curve - 1), rest) + EIGHT_UNITS
    for height, digits in ((UPPER_HALF, b""), (curve - 1, b""), (curve, bytes(8)), (curve, b"\xff" * 8)):
        word = crafted.word_for(strips, crafted.LAST_STRIP, height)
        yield crafted.one_draw(word, 0, digits) + EIGHT_UNITS
