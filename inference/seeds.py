"""From the seed that a user states to the random numbers of one fit."""

from collections.abc import Mapping
from zlib import crc32

import numpy as np


def seed_of(seed: int, asked: str, data: Mapping[str, object]) -> int:
    """Return the seed of one fit, which follows from the question or formula and from the data.

    Two fits under one seed draw independently, so that `a.draws - b.draws` is as wide as it should be. A fit
    of the same data repeats its draws.

    Args:
        seed: as stated, by default 0.
        asked: the question's id, or the formula.
        data: the model's arrays by name.
    """
    own = crc32(f"{seed} {asked}".encode())
    for name in sorted(data):
        values = np.ascontiguousarray(data[name])
        own = crc32(values.tobytes(), crc32(name.encode(), own))
    return own
