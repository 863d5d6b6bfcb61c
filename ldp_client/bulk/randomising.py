"""Each mechanism's `randomise` for arrays of quantised answers, and the uniform integers that they draw.

Exactly rounded normal and Laplace noise follows core/strips.py on arrays of 64-bit integers: it reads the
same bytes and returns the same integers as the scalar sampler. The 2.5 % of draws that one comparison does
not accept go to the scalar sampler one by one.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.columns.arrays import Integers
from ldp_client.core.noise_levels import CHOICE_BITS
from ldp_client.core.randomness import Source, read
from ldp_client.core.strips import CELL_BITS, COLUMN_BITS, DRAW_BYTES, POINT_BITS, table_of
from ldp_client.mechanisms.base import LARGEST_SIGNED
from ldp_client.mechanisms.gaussian_statistics import MULTIPLIER_BITS
from ldp_client.mechanisms.olh import COEFFICIENTS, PRIME
from ldp_client.mechanisms.sampled_products import SPARE_BITS, SQUARE

Payloads = NDArray[np.uint8]
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


def biased_bits(threshold: int, size: int, random: Source) -> Payloads:
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


def big_endian(values: Integers, size: int) -> Payloads:
    """Return non-negative integers as rows of `size` bytes."""
    wide: Any = values.astype(">u8").view(np.uint8).reshape(-1, 8)
    return np.ascontiguousarray(wide[:, 8 - size :])


@lru_cache(maxsize=2)
def _columns_of(law: str) -> Integers:
    """Return rows of a table of strips: threshold, other, other_start and sure."""
    table = table_of(law)
    return np.asarray([table.threshold, table.other, table.other_start, table.sure], np.int64)


def draw(law: str, count: int, random: Source) -> Integers:
    """Draw round(2**20 × X) `count` times, X standard "normal" or "laplace", as the scalar sampler does."""
    threshold, other, other_start, sure = _columns_of(law)
    buffer = read(random, DRAW_BYTES * count)
    digits = np.frombuffer(buffer, "<u8", count)
    points = np.frombuffer(buffer, "<u4", count, 8 * count).astype(np.int64)
    # 1. The strip that each number picks, and the height there.
    columns = (digits >> np.uint64(COLUMN_BITS)).astype(np.int64)
    heights = (digits & np.uint64((1 << COLUMN_BITS) - 1)).astype(np.int64)
    is_other = heights >= threshold[columns]
    strips = np.where(is_other, other[columns], columns)
    heights += np.where(is_other, other_start[columns], 0)
    # 2. The values, and those that one comparison does not accept.
    offsets = ((points >> (POINT_BITS - CELL_BITS)) + 1) >> 1
    magnitudes = (strips << CELL_BITS) + offsets
    values = np.where(points & 1, -magnitudes, magnitudes)
    table = table_of(law)
    for index in np.flatnonzero(heights >= sure[strips]).tolist():
        values[index] = table.draw_from(int(digits[index]), int(points[index]), random)
    return values


def number(mechanism: Any, indices: Any, random: Source) -> Payloads:
    """Add Laplace or normal noise to grid points."""
    law = "normal" if mechanism.name == "gaussian" else "laplace"
    return pack_signed((np.asarray(indices, np.int64) + draw(law, len(indices), random))[:, None])


def refusable(mechanism: Any, answers: Any, random: Source) -> Payloads:
    """Draw a number's noise in any case, then the coin that reports refusals."""
    indices, refused = np.asarray(answers, np.int64).reshape(-1, 2).T
    noisy = number(mechanism.number, indices, random)
    return np.hstack([noisy, big_endian(truth_or_other(refused, 2, mechanism.threshold, random), 1)])


def gaussian_statistics(mechanism: Any, vectors: Any, random: Source) -> Payloads:
    """Return the upper triangles of vvᵀ in integers, with normal noise on each entry."""
    rows = np.asarray(vectors, np.int64)
    first, second = np.asarray(mechanism.coordinates).T
    products = np.ascontiguousarray(rows[:, first] * rows[:, second])
    multipliers = [mechanism.diagonal if i == j else mechanism.off_diagonal for i, j in mechanism.coordinates]
    exact = products.astype(object) * np.asarray(multipliers, object) + (1 << (MULTIPLIER_BITS - 1))
    noise = draw("normal", products.size, random).reshape(products.shape)
    return pack_signed((exact >> MULTIPLIER_BITS).astype(np.int64) + noise)


def gaussian_record(mechanism: Any, vectors: Any, random: Source) -> Payloads:
    """Add normal noise to each entry, except a yes/no response, which goes by randomized response."""
    rows = np.asarray(vectors, np.int64)
    entries = rows[:, :-1] if mechanism.binary else rows
    noise = draw("normal", entries.size, random).reshape(entries.shape)
    payloads = pack_signed(entries + noise)
    if not mechanism.binary:
        return payloads
    responses = truth_or_other(rows[:, -1], 2, mechanism.threshold, random)
    return np.hstack([payloads, big_endian(responses, 1)])


def sampled_products(mechanism: Any, vectors: Any, random: Source) -> Payloads:
    """Draw a block of each record's products, round them to signs, and randomize their pattern."""
    rows, signs = np.asarray(vectors, np.int64), mechanism.signs
    drawn = below(mechanism.total, len(rows), random)
    places = np.searchsorted(mechanism.ends, drawn, side="right")
    first, second = np.asarray(mechanism.coordinates).T
    chosen = np.asarray(mechanism.blocks)[places]
    products = np.take_along_axis(rows, first[chosen], 1) * np.take_along_axis(rows, second[chosen], 1)
    rounding = np.frombuffer(read(random, 8 * signs * len(rows)), ">u8") >> np.uint64(SPARE_BITS)
    positive = rounding.astype(np.int64).reshape(-1, signs) < SQUARE + products
    told = places * mechanism.patterns + positive @ (1 << np.arange(signs)[::-1])
    lies = words(len(rows), random) >= mechanism.threshold
    told ^= lies * (1 if signs == 1 else 1 + below(mechanism.patterns - 1, len(rows), random))
    return big_endian(told, mechanism.payload_size)


def pack_signed(values: Integers) -> Payloads:
    """Pack rows as signed 32-bit big-endian integers. Values beyond their range saturate."""
    whole: Any = np.ascontiguousarray(np.clip(values, -LARGEST_SIGNED, LARGEST_SIGNED), ">i4")
    rows: Payloads = whole.view(np.uint8).reshape(len(values), 4 * values.shape[1])
    return rows


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
    truths = np.asarray(indices, np.int64)
    a, b, c = (_below_prime(len(truths), random) for _ in range(COEFFICIENTS))
    hashes = ((a * truths + b) % PRIME * truths + c) % PRIME % mechanism.hashes
    values = truth_or_other(hashes, mechanism.hashes, mechanism.threshold, random)
    parts = [big_endian(part, 4) for part in (a, b, c)]
    return np.hstack([*parts, big_endian(values, mechanism.value_size)])


def _below_prime(count: int, random: Source) -> Integers:
    """Draw uniform integers below 2**31 − 1, by rejection of the only 31-bit word that is not below it."""
    drawn = words(count, random) >> 1
    while (refused := np.flatnonzero(drawn >= PRIME)).size:
        drawn[refused] = words(len(refused), random) >> 1
    return drawn


def hadamard(mechanism: Any, indices: Any, random: Source) -> Payloads:
    """Draw halves of blocks by randomized response, then a uniform column of each."""
    truths = np.asarray(indices, np.int64)
    blocks, rows = truths // (mechanism.width - 1), truths % (mechanism.width - 1) + 1
    halves = truth_or_other(2 * blocks, 2 * mechanism.blocks, mechanism.threshold, random)
    columns = words(len(truths), random) & (mechanism.width - 1)
    columns ^= (rows & -rows) * (np.bitwise_count(columns & rows) + halves & 1)
    return big_endian((halves >> 1) * mechanism.width + columns, mechanism.payload_size)
