"""Sums of bytes against plain sums of unpacked bits."""

from __future__ import annotations

import numpy as np
import pytest

from summaries.reductions.choice import BITS_AT_ONCE, MOST_IN_BYTE, column_sums


@pytest.mark.parametrize("columns", [1, 65, 130, BITS_AT_ONCE // 100])
@pytest.mark.parametrize("rows", [0, 3, MOST_IN_BYTE, MOST_IN_BYTE + 1, 3 * MOST_IN_BYTE + 5])
def test_column_sums_match_unpacked_bits(rows: int, columns: int) -> None:
    bits = (np.random.default_rng(rows).random((rows, columns)) < 0.99).astype(np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    assert column_sums(packed, columns).tolist() == bits.sum(axis=0).tolist()
