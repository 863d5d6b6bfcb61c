"""Splitting a vector of 64-bit words into shares that sum to it modulo 2**64, all but one from short seeds.

A seed of 32 bytes becomes a share of any length by a stream cipher's key stream, or an XOF. Both are standard
and come from libraries: ChaCha20 from `cryptography`, SHAKE-256 from Python itself. A seed is used once, so
the cipher's nonce is zero.
"""

import hashlib
import struct

from ldp_client.core.randomness import read, urandom
from ldp_client.documents.errors import MissingExtraError
from ldp_client.mechanisms.summed import MODULUS, WORD_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ldp_client.core.randomness import Source


SEED_BYTES = 32
NONCE = bytes(16)


def expand(expansion: str, seed: bytes, size: int) -> bytes:
    """`size` bytes. Raises MissingExtraError where "chacha20" is wanted and `cryptography` is missing."""
    if expansion == "shake_256":
        return hashlib.shake_256(seed).digest(size)
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
    except ImportError:
        raise MissingExtraError("secure-sum", "cryptography") from None
    stream: bytes = Cipher(ChaCha20(seed, NONCE), mode=None).encryptor().update(bytes(size))
    return stream


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
