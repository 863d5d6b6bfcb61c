"""How often each bit of packed rows is set, by an adder tree on machine words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Rows at a time: their words and sums stay in the processor's cache.
ROWS_AT_ONCE = 1 << 13
Words = NDArray[np.uint64]


def column_sums(rows: NDArray[np.uint8], columns: int) -> NDArray[np.int64]:
    """Sums (columns,) of the bits of rows (n, bytes), lowest bit of the first byte first."""
    total = np.zeros(columns, dtype=np.int64)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        for power, words in enumerate(_carried(_words(rows[start : start + ROWS_AT_ONCE]))):
            bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little", count=columns)
            total += bits.sum(axis=0, dtype=np.int64) << power
    return total


def _words(rows: NDArray[np.uint8]) -> Words:
    """Rows padded to whole words of 64 bits, (n, words)."""
    missing = -rows.shape[1] % 8
    padded = np.pad(rows, [(0, 0), (0, missing)]) if missing else np.ascontiguousarray(rows)
    return padded.view(np.uint64)


def _carried(words: Words) -> list[Words]:
    """Vertical counters: at most two rows of words for each power of two, with the weighted sum of `words`.

    A full adder turns three rows into their sum and their carry, which counts twice: five operations on
    words for every 64 bits.
    """
    powers: list[Words] = []
    level = words
    while len(level):
        carries: list[Words] = []
        while len(level) > 2:
            third = len(level) // 3
            a, b, c = level[:third], level[third : 2 * third], level[2 * third : 3 * third]
            either = a ^ b
            carries.append((a & b) | (either & c))
            level = np.concatenate([either ^ c, level[3 * third :]])
        powers.append(level)
        level = np.concatenate(carries) if carries else words[:0]
    return powers
