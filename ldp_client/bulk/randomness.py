"""Unbiased arrays of uniform integers from a source of random bytes, as the scalar functions read it."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.core.noise_levels import CHOICE_BITS
from ldp_client.core.randomness import Source, read

Bytes = NDArray[np.uint8]
Integers = NDArray[np.int64]


WORD = 1 << 32
# The digits of a threshold below its highest byte.
LOWER_BITS = CHOICE_BITS - 8


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

    A random byte decides nearly every bit. The 24 lower digits are drawn only for a byte that equals the
    threshold's own: one in 256, whatever the answers.
    """
    highest, rest = divmod(threshold, 1 << LOWER_BITS)
    first = np.frombuffer(read(random, 8 * size), np.uint8)
    below = first < highest
    undecided = np.flatnonzero(first == highest)
    below[undecided] = words(len(undecided), random) >> (CHOICE_BITS - LOWER_BITS) < rest
    return np.packbits(below, bitorder="little")


def big_endian(values: Integers, size: int) -> Bytes:
    """Return non-negative integers as rows of `size` bytes."""
    wide: Any = values.astype(">u8").view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(wide[:, 8 - size :])
