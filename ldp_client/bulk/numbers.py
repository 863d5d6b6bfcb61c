"""Noise for numbers and records, as integers on the grid. Each function is a mechanism's `randomise`.

Exactly rounded normal and Laplace noise follows core/strips.py on arrays of 64-bit integers: it reads the
same bytes and returns the same integers as the scalar sampler. The 2.5 % of draws that one comparison does
not accept go to the scalar sampler one by one.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.bulk.randomness import below, big_endian, truth_or_other, words
from ldp_client.core.randomness import Source, read
from ldp_client.core.strips import CELL_BITS, COLUMN_BITS, DRAW_BYTES, POINT_BITS, table_of
from ldp_client.mechanisms.gaussian_statistics import MULTIPLIER_BITS
from ldp_client.mechanisms.sampled_products import SPARE_BITS, SQUARE

Integers = NDArray[np.int64]
Payloads = NDArray[np.uint8]


@lru_cache(maxsize=2)
def _columns_of(law: str) -> Integers:
    """Return rows of a table of strips: threshold, other, other_start and sure."""
    table = table_of(law)
    return np.asarray([table.threshold, table.other, table.other_start, table.sure], np.int64)


def draw(law: str, count: int, random: Source) -> Integers:
    """Draw round(2**20 × X) `count` times, X standard "normal" or "laplace", as the scalar sampler does."""
    threshold, other, other_start, sure = _columns_of(law)
    buffer = read(random, DRAW_BYTES * count)
    words = np.frombuffer(buffer, "<u8", count)
    points = np.frombuffer(buffer, "<u4", count, 8 * count).astype(np.int64)
    # 1. The strip that each word picks, and the height there.
    columns = (words >> np.uint64(COLUMN_BITS)).astype(np.int64)
    heights = (words & np.uint64((1 << COLUMN_BITS) - 1)).astype(np.int64)
    is_other = heights >= threshold[columns]
    strips = np.where(is_other, other[columns], columns)
    heights += np.where(is_other, other_start[columns], 0)
    # 2. The values, and those that one comparison does not accept.
    offsets = ((points >> (POINT_BITS - CELL_BITS)) + 1) >> 1
    magnitudes = (strips << CELL_BITS) + offsets
    values = np.where(points & 1, -magnitudes, magnitudes)
    table = table_of(law)
    for index in np.flatnonzero(heights >= sure[strips]).tolist():
        values[index] = table.draw_from(int(words[index]), int(points[index]), random)
    return values


LIMIT = (1 << 31) - 1


def laplace(mechanism: Any, indices: Any, random: Source) -> Payloads:  # noqa: ARG001
    return _disturbed(indices, draw("laplace", len(indices), random))


def gaussian(mechanism: Any, indices: Any, random: Source) -> Payloads:  # noqa: ARG001
    return _disturbed(indices, draw("normal", len(indices), random))


def refusable(mechanism: Any, answers: Any, random: Source) -> Payloads:
    """Draw a number's noise in any case, then the coin that reports refusals."""
    indices, refused = np.asarray(answers, np.int64).reshape(-1, 2).T
    law = "normal" if mechanism.number.name == "gaussian" else "laplace"
    noisy = _disturbed(indices, draw(law, len(indices), random))
    return np.hstack([noisy, big_endian(truth_or_other(refused, 2, mechanism.threshold, random), 1)])


def _disturbed(indices: Any, noise: Integers) -> Payloads:
    return pack_signed((np.asarray(indices, np.int64) + noise)[:, None])


def gaussian_statistics(mechanism: Any, vectors: Any, random: Source) -> Payloads:
    """Return the upper triangles of vvᵀ in integers, with normal noise on each entry."""
    rows = np.asarray(vectors, np.int64)
    first, second = np.asarray(mechanism.coordinates).T
    products = np.ascontiguousarray(rows[:, first] * rows[:, second])
    multipliers = [mechanism.diagonal if i == j else mechanism.off_diagonal for i, j in mechanism.coordinates]
    noise = draw("normal", products.size, random).reshape(products.shape)
    return pack_signed(scaled(products, multipliers) + noise)


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


def scaled(products: Integers, multipliers: list[int]) -> Integers:
    """Return exactly (product × multiplier + ½) >> MULTIPLIER_BITS, with a multiplier for each column."""
    exact = products.astype(object) * np.asarray(multipliers, object) + (1 << (MULTIPLIER_BITS - 1))
    rounded: Integers = (exact >> MULTIPLIER_BITS).astype(np.int64)
    return rounded


def pack_signed(values: Integers) -> Payloads:
    """Pack rows as signed 32-bit big-endian integers. Values beyond their range saturate."""
    whole: Any = np.ascontiguousarray(np.clip(values, -LIMIT, LIMIT), ">i4")
    rows: Payloads = whole.view(np.uint8).reshape(len(values), 4 * values.shape[1])
    return rows
