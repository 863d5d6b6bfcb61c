"""Choice mechanisms on arrays of indices. Each function is the mechanism's `randomise` for many answers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.bulk.randomness import biased_bits, big_endian, truth_or_other, words
from ldp_client.core.randomness import Source, read

Integers = NDArray[np.int64]
Payloads = NDArray[np.uint8]


def randomized_response(mechanism: Any, indices: Any, random: Source) -> Payloads:
    truths = np.asarray(indices, np.int64)
    reported = truth_or_other(truths, mechanism.choices, mechanism.threshold, random)
    return big_endian(reported, mechanism.payload_size)


def oue(mechanism: Any, indices: Any, random: Source) -> Payloads:
    """Draw noisy bits for all choices, then a fair coin for the true choice."""
    noisy, rows, places, masks = _noisy_bits(mechanism, indices, random)
    coins = np.frombuffer(read(random, len(rows)), np.uint8)
    noisy[rows, places] = (noisy[rows, places] & ~masks) | (coins & masks)
    return noisy


def sue(mechanism: Any, indices: Any, random: Source) -> Payloads:
    """Draw bit flips for all choices, then flip the true choice's bit."""
    flips, rows, places, masks = _noisy_bits(mechanism, indices, random)
    flips[rows, places] ^= masks
    return flips


def _noisy_bits(
    mechanism: Any, indices: Any, random: Source
) -> tuple[Payloads, Integers, Integers, Payloads]:
    """Return rows of biased bits with spare bits 0, and the true bits' places: row, byte, mask."""
    truths = np.asarray(indices, np.int64)
    size = mechanism.payload_size
    noisy = biased_bits(mechanism.threshold, len(truths) * size, random).reshape(len(truths), size)
    noisy[:, -1] &= _last_byte(mechanism)
    masks = np.left_shift(1, truths & 7).astype(np.uint8)
    return noisy, np.arange(len(truths)), truths >> 3, masks


def memoized(mechanism: Any, indices: Any, random: Source) -> Payloads:
    """Draw permanent answers, and one report from each."""
    if mechanism.of == "sue":
        bits = sue(mechanism.first, indices, random)
        flips = biased_bits(mechanism.again, bits.size, random).reshape(bits.shape)
        flips[:, -1] &= _last_byte(mechanism)
        return bits ^ flips
    first = mechanism.first
    kept = truth_or_other(np.asarray(indices, np.int64), first.choices, first.threshold, random)
    return big_endian(truth_or_other(kept, first.choices, mechanism.again, random), mechanism.payload_size)


def _last_byte(mechanism: Any) -> int:
    """Return a mask of the bits in a row's last byte that belong to choices."""
    choices: int = mechanism.choices
    return (1 << ((choices - 1) % 8 + 1)) - 1


def olh(mechanism: Any, indices: Any, random: Source) -> Payloads:
    """Draw a hash function for each answer, and report its hash by randomized response."""
    from ldp_client.mechanisms.olh import COEFFICIENTS, PRIME

    truths = np.asarray(indices, np.int64)
    a, b, c = (_below_prime(len(truths), PRIME, random) for _ in range(COEFFICIENTS))
    hashes = ((a * truths + b) % PRIME * truths + c) % PRIME % mechanism.hashes
    values = truth_or_other(hashes, mechanism.hashes, mechanism.threshold, random)
    parts = [big_endian(part, 4) for part in (a, b, c)]
    return np.hstack([*parts, big_endian(values, mechanism.value_size)])


def _below_prime(count: int, prime: int, random: Source) -> Integers:
    """Draw uniform integers below 2**31 − 1, by rejection of the only 31-bit word that is not below it."""
    drawn = words(count, random) >> 1
    while (refused := np.flatnonzero(drawn >= prime)).size:
        drawn[refused] = words(len(refused), random) >> 1
    return drawn


def hadamard(mechanism: Any, indices: Any, random: Source) -> Payloads:
    """Draw halves of blocks by randomized response, then a uniform column of each."""
    truths = np.asarray(indices, np.int64)
    blocks, rows = truths // (mechanism.width - 1), truths % (mechanism.width - 1) + 1
    halves = truth_or_other(2 * blocks, 2 * mechanism.blocks, mechanism.threshold, random)
    columns = words(len(truths), random) & (mechanism.width - 1)
    columns ^= (rows & -rows) * (_parity(columns & rows) ^ (halves & 1))
    return big_endian((halves >> 1) * mechanism.width + columns, mechanism.payload_size)


def _parity(values: Integers) -> Integers:
    for shift in (16, 8, 4, 2, 1):
        values = values ^ (values >> shift)
    return values & 1
