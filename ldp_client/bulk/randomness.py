"""Unbiased arrays of uniform integers from a source of random bytes, as the scalar functions read it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.core.noise_levels import CHOICE_BITS
from ldp_client.core.randomness import Source, read

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


WORD = 1 << 32


def words(count: int, random: Source) -> Integers:
    """Draw `count` uniform integers below 2**32, as random_bits(32, …) reads each."""
    return np.frombuffer(read(random, 4 * count), ">u4").astype(np.int64)


def below(limits: int | Integers, count: int, random: Source) -> Integers:
    """Draw `count` uniform integers in 0..limit−1 by rejection. limits: one or `count` limits ≤ 2**32."""
    limits = np.broadcast_to(np.asarray(limits, np.int64), count)
    drawn = words(count, random)
    ceilings = WORD - WORD % limits
    while (refused := np.flatnonzero(drawn >= ceilings)).size:
        drawn[refused] = words(len(refused), random)
    return drawn % limits


def truth_or_other(truths: Integers, count: int, threshold: int, random: Source) -> Integers:
    """Return each truth with probability threshold / 2**32, else another of 0..count−1, uniformly."""
    truthful = words(len(truths), random) < threshold
    others = below(count - 1, len(truths), random)
    others += others >= truths
    return np.where(truthful, truths, others)


def biased_bits(threshold: int, size: int, random: Source) -> Bytes:
    """Draw `size` bytes of independent bits, each 1 with probability exactly threshold / 2**CHOICE_BITS.

    Compares bit-sliced fractions with the threshold, 8 digits at a time and the highest first. Lower digits
    are drawn only for bytes with an undecided bit: one in 32, whatever the answers.
    """
    return _compare(threshold, CHOICE_BITS, size, random)


FIRST_DIGITS = 8


def _compare(threshold: int, digits: int, size: int, random: Source) -> Bytes:
    """Draw bits that are 1 if a fraction of `digits` random binary digits is below threshold."""
    if digits <= FIRST_DIGITS:
        return _digits_below(threshold, digits, size, random)[0]
    rest = digits - FIRST_DIGITS
    smaller, equal = _digits_below(threshold >> rest, FIRST_DIGITS, size, random)
    open_bytes = np.flatnonzero(equal)
    lower = _compare(threshold & ((1 << rest) - 1), rest, len(open_bytes), random)
    smaller[open_bytes] |= equal[open_bytes] & lower
    return smaller


def _digits_below(threshold: int, digits: int, size: int, random: Source) -> tuple[Bytes, Bytes]:
    """Return for every bit whether a random number of `digits` digits is below threshold, or equal to it.

    Reads one block of random bytes for each digit, lowest first: the digits' complements.
    """
    padded = size + -size % 8
    smaller = np.zeros(padded // 8, np.uint64)
    equal = ~smaller
    for digit in range(digits):
        fresh = np.frombuffer(read(random, padded), np.uint64)
        if threshold >> digit & 1:
            smaller |= fresh
            equal &= ~fresh
        else:
            smaller &= fresh
            equal &= fresh
    return smaller.view(np.uint8)[:size], equal.view(np.uint8)[:size]


def big_endian(values: Integers, size: int) -> Bytes:
    """Return non-negative integers as rows of `size` bytes."""
    wide: Any = values.astype(">u8").view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(wide[:, 8 - size :])
