"""Uniform integers from a source of random bytes, without bias.

A source is a function n -> n random bytes: os.urandom, or anything as good that is passed in.
"""

import os

from schemas.errors import LdpkitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    Source = Callable[[int], bytes]


def urandom(size: int) -> bytes:
    """The operating system's random bytes. Raises LdpkitError where there are none."""
    try:
        return os.urandom(size)
    except AttributeError:  # some microcontroller builds
        raise LdpkitError("this platform has no os.urandom: pass random=, a function n -> n bytes") from None


def random_bits(bits: int, random: "Source") -> int:
    """A uniform integer below 2**bits, bits a multiple of 8."""
    return int.from_bytes(random(bits // 8), "big")


def truth_or_other(truth: int, count: int, threshold: int, random: "Source") -> int:
    """`truth` with probability threshold / 2**32, else another of 0..count−1, equally.

    Draws the coin and the other one whether or not it needs them.
    """
    truthful = random_bits(32, random) < threshold
    other = uniform_below(count - 1, random)
    other += other >= truth
    return truth if truthful else other


def uniform_below(limit: int, random: "Source") -> int:
    """A uniform integer in 0..limit−1, limit ≤ 2**32, by rejection."""
    ceiling = (1 << 32) - (1 << 32) % limit
    while True:
        draw = random_bits(32, random)
        if draw < ceiling:
            return draw % limit
