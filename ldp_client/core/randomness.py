"""Unbiased uniform integers from random bytes of the operating system.

A source is a function n -> n random bytes. Only `read` calls a source. It refuses every source but the
operating system's and `NotForRealAnswers`: no test of its bytes could find a predictable source. It rejects
results of another length or type, which would make the noise too small. Reads of the operating system are
compared with its recent ones: a stuck or periodic generator repeats them.
"""

import os
from collections.abc import Callable
from typing import Any

from ldp_client.documents.errors import RandomnessError

# A function n -> n random bytes.
Source = Callable[[int], bytes]
# Reads of the system that are compared with each other: false alarms below 2**-56.
RECENT_READS = 256
LEAST_COMPARED = 8


class NotForRealAnswers:
    """Admits another source: recorded bytes in tests, seeded bytes in simulations.

    An attacker who knows the bytes can remove the noise. Lengths are still checked.
    """

    def __init__(self, source: Source) -> None:
        self.source = source

    def __call__(self, size: int) -> bytes:
        return self.source(size)


def urandom(size: int) -> bytes:
    """Return random bytes of the operating system."""
    return os.urandom(size)


def read(random: Source, size: int) -> bytes:
    """Read `size` bytes of a source. Raises RandomnessError if it is broken or not a source of secrets."""
    is_system = random is urandom or random is os.urandom
    if not is_system and not isinstance(random, NotForRealAnswers):
        raise RandomnessError.say("core.random_source")
    fresh = random(size)
    if not isinstance(fresh, (bytes, bytearray)) or len(fresh) != size:
        raise RandomnessError.say("core.random_size", size=size)
    # Short reads may repeat by chance.
    if is_system and size >= LEAST_COMPARED:
        _refuse_repeated(fresh)
    return fresh


def _refuse_repeated(fresh: bytes) -> None:
    """Raise RandomnessError if a recent read of the system had the same bytes.

    Only digests are kept: the bytes themselves are secrets.
    """
    if _recent[0] is not os.urandom:
        # An import may let another thread come first: no digest of its reads may be lost.
        from hashlib import sha256

        if _recent[0] is not os.urandom:
            _recent[:] = [os.urandom, sha256, []]
    _, hashed, digests = _recent
    digest = hashed(fresh).digest()[:LEAST_COMPARED]
    if digest in digests:
        raise RandomnessError.say("core.random_same")
    digests.append(digest)
    if len(digests) > RECENT_READS:
        digests.pop(0)


# The system's generator, the hash function, loaded at the first read, and digests of recent reads.
_recent: list[Any] = [None, None, []]


def random_bits(bits: int, random: Source) -> int:
    """Draw a uniform integer below 2**bits, for bits a multiple of 8."""
    return int.from_bytes(read(random, bits // 8), "big")


def truth_or_other(truth: int, count: int, threshold: int, random: Source) -> int:
    """Return `truth` with probability threshold / 2**32, else another of 0..count−1, uniformly.

    Always draws both the coin and the other value, even if it does not need them.
    """
    truthful = random_bits(32, random) < threshold
    other = uniform_below(count - 1, random)
    other += other >= truth
    return truth if truthful else other


def uniform_below(limit: int, random: Source) -> int:
    """Draw a uniform integer in 0..limit−1, limit ≤ 2**32, by rejection."""
    ceiling = (1 << 32) - (1 << 32) % limit
    while True:
        draw = random_bits(32, random)
        if draw < ceiling:
            return draw % limit
