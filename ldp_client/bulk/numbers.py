"""Noise for numbers and records, as integers on the grid. Each function is a mechanism's `randomise`.

Exactly rounded normal and Laplace noise follows core/strips.py on arrays of 64-bit integers: it reads the
same bytes and returns the same integers as the scalar sampler. Draws that one comparison does not accept are
compared with integer bounds of the curve: on a strip of width w it is within w²/8 sup|f″| of its chord.
Undecided and rejected draws go to the scalar sampler one by one.
"""

import itertools
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ldp_client.bulk.randomness import below, big_endian, truth_or_other, words
from ldp_client.core.randomness import Source, read
from ldp_client.core.strips import (
    CELL_BITS,
    COLUMN_BITS,
    CURVE_BITS,
    DRAW_BYTES,
    POINT_BITS,
    STRIP_BITS,
    STRIPS,
    Strips,
    table_of,
)
from ldp_client.mechanisms.gaussian_statistics import MULTIPLIER_BITS
from ldp_client.mechanisms.sampled_products import SPARE_BITS, SQUARE

Integers = NDArray[np.int64]
Payloads = NDArray[np.uint8]


# A point's place along a chord is cut to this many bits.
CHORD_BITS = 9
NEVER = 1 << 61


class BulkStrips:
    """One table of strips as arrays."""

    def __init__(self, table: Strips) -> None:
        self.table = table
        self.threshold = np.asarray(table.threshold, np.int64)
        self.other = np.asarray(table.other, np.int64)
        self.other_start = np.asarray(table.other_start, np.int64)
        self.sure = np.asarray(table.sure, np.int64)
        self._bound_curve()

    def _bound_curve(self) -> None:
        """Store M·f at left edges, its fall over 2**-CHORD_BITS of a strip, and the chord's largest error.

        f″ is (x² − 1)f for the normal and f for the exponential, and f falls.
        """
        table = self.table
        edges = range(STRIPS + 1)
        curve = [table.above(edge, STRIP_BITS, CURVE_BITS) for edge in edges]
        heights = [table.scale * height // table.total for height in curve]
        falls = [((left - right) >> CHORD_BITS) + 1 for left, right in itertools.pairwise(heights)]
        bends = [1 if table.tail else (edge * edge >> (2 * STRIP_BITS)) + 1 for edge in edges[1:]]
        # The added terms cover the rounding of the falls and of the heights.
        slack = [
            (height * bend >> (2 * STRIP_BITS + 3)) + (1 << CHORD_BITS) + 4
            for height, bend in zip(heights, bends)
        ]
        if table.tail:
            slack[-1] = NEVER
        self.edge = np.asarray(heights[:-1], np.int64)
        self.fall = np.asarray(falls, np.int64)
        self.slack = np.asarray(slack, np.int64)

    def draw(self, count: int, random: Source) -> Integers:
        """Return table.draw(count, random) as an array."""
        buffer = read(random, DRAW_BYTES * count)
        words = np.frombuffer(buffer, "<u8", count)
        points = np.frombuffer(buffer, "<u4", count, 8 * count).astype(np.int64)
        strips, heights = self._place(words)
        open_ = np.flatnonzero(heights >= self.sure[strips])
        offsets = ((points >> (POINT_BITS - CELL_BITS)) + 1) >> 1
        magnitudes = (strips << CELL_BITS) + offsets
        values = np.where(points & 1, -magnitudes, magnitudes)
        under, over = self._judge(strips[open_], points[open_], heights[open_])
        for index, rejected in zip(open_[~under].tolist(), over[~under].tolist()):
            word, point = int(words[index]), int(points[index])
            if rejected:
                word, point = struct.unpack("<QI", read(random, DRAW_BYTES))
            values[index] = self.table.draw_from(word, point, random)
        return values

    def _place(self, words: NDArray[np.uint64]) -> tuple[Integers, Integers]:
        """Return the strips that words pick, and their heights there."""
        columns = (words >> np.uint64(COLUMN_BITS)).astype(np.int64)
        heights = (words & np.uint64((1 << COLUMN_BITS) - 1)).astype(np.int64)
        given = heights >= self.threshold[columns]
        strips = np.where(given, self.other[columns], columns)
        return strips, heights + np.where(given, self.other_start[columns], 0)

    def _judge(
        self, strips: Integers, points: Integers, heights: Integers
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which draws are certainly under the curve, and which are certainly over it."""
        places = points >> (POINT_BITS + 1 - CHORD_BITS)
        fall, slack = self.fall[strips], self.slack[strips]
        chord = self.edge[strips] - fall * places
        return heights < chord - fall - slack, heights > chord + slack


_tables: dict[str, BulkStrips] = {}


def draw(law: str, count: int, random: Source) -> Integers:
    """Draw round(2**20 × X) `count` times, X standard "normal" or "laplace", as the scalar sampler does."""
    if law not in _tables:
        _tables[law] = BulkStrips(table_of(law))
    return _tables[law].draw(count, random)


LIMIT = (1 << 31) - 1
# Products in floating point are below 2**27, with error below 2**-24. Values near a half are done exactly.
UNSURE = 2.0**-20


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
    factors = np.asarray([multiplier / (1 << MULTIPLIER_BITS) for multiplier in multipliers])
    near = products * factors + 0.5
    whole = np.floor(near)
    result: Integers = whole.astype(np.int64)
    unsure = np.minimum(near - whole, 1 - (near - whole)) < UNSURE
    half = 1 << (MULTIPLIER_BITS - 1)
    for row, column in np.argwhere(unsure).tolist():
        exact = int(products[row, column]) * multipliers[column]
        result[row, column] = (exact + half) >> MULTIPLIER_BITS
    return result


def pack_signed(values: Integers) -> Payloads:
    """Pack rows as signed 32-bit big-endian integers. Values beyond their range saturate."""
    whole: Any = np.ascontiguousarray(np.clip(values, -LIMIT, LIMIT), ">i4")
    rows: Payloads = whole.view(np.uint8).reshape(len(values), 4 * values.shape[1])
    return rows
