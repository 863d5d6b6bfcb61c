"""Splitting a vector of 64-bit words into shares that sum to it modulo 2**64."""

import struct

from ldp_client.core.randomness import read, urandom
from ldp_client.mechanisms.summed import MODULUS, WORD_BYTES
from ldp_client.secure_sum.expansion import SEED_BYTES, expand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.core.randomness import Source


def split(vector: bytes, shares: int, expansion: str, random: "Source" = urandom) -> "list[bytes]":
    """The vector in `shares` pieces: the first is words, each other a seed that `expand` turns into words.

    vector: little-endian 64-bit words. Any `shares` − 1 pieces are independent of the vector.
    """
    layout = f"<{len(vector) // WORD_BYTES}Q"
    left = list(struct.unpack(layout, vector))
    seeds = [read(random, SEED_BYTES) for _ in range(shares - 1)]
    for seed in seeds:
        mask = struct.unpack(layout, expand(expansion, seed, len(vector)))
        left = [(word - part) % MODULUS for word, part in zip(left, mask)]
    return [struct.pack(layout, *left), *seeds]
