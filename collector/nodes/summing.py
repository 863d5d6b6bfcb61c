"""A node's sum over the set that it is bound to: open shares, expand seeds, add modulo 2**64.

The sum takes bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from numpy.typing import NDArray

from ldp_client import mechanisms_of, secure_sum
from ldp_client.documents.channel import WORD_BYTES
from ldp_client.documents.errors import ReportError
from schemas import Study

SHA256_BYTES = 32
Words = NDArray[np.uint64]

# How many expanded seeds are added at once: they should fit into a processor's cache.
MOST_AT_ONCE, CACHE_BYTES = 64, 1 << 19


@dataclass(frozen=True)
class Opener:
    """Opens one node's shares for one study.

    Attributes:
        node: its place in the protocol. The first node gets words, each other node a seed.
        size: bytes of the vector.
    """

    study: Study
    node: int
    size: int
    key: X25519PrivateKey

    @classmethod
    def of(cls, study: Study, node: int, key: X25519PrivateKey) -> Opener:
        """Make the opener for the node at this place."""
        size = sum(mechanism.payload_size for mechanism in mechanisms_of(study).values())
        return cls(study, node, size, key)

    @property
    def share_size(self) -> int:
        """The bytes of a share before it is sealed."""
        return secure_sum.SEED_BYTES if self.node else self.size

    def open(self, report_id: str, sealed: bytes) -> bytes:
        """Open a share. Raises ReportError unless it was sealed to this node for this study and report."""
        if len(sealed) != self.share_size + secure_sum.OVERHEAD_BYTES:
            raise ReportError(
                "share",
                f"must have {self.share_size + secure_sum.OVERHEAD_BYTES} bytes, has {len(sealed)}",
                code="report.share_size",
            )
        info = secure_sum.context(self.study.digest, report_id, self.node)
        try:
            share: bytes = secure_sum.suite().decrypt(sealed, self.key, info=info)
        except (InvalidTag, ValueError):
            raise ReportError(
                "share",
                "was not sealed to this node for this study and report",
                code="report.share_not_opened",
            ) from None
        return share

    def nonce(self, report_id: str, sealed: bytes, digests: str) -> bytes:
        """Return the token nonce for this share and all others of these digests; b"" if it is not among them.

        digests: SHA-256 of every sealed share, as in the device's header.
        """
        try:
            each = bytes.fromhex(digests)
        except ValueError:
            return b""
        assert self.study.protocol is not None
        whole = len(each) == SHA256_BYTES * len(self.study.protocol.nodes)
        own = each[SHA256_BYTES * self.node :][:SHA256_BYTES]
        return secure_sum.shares_nonce(report_id, each) if whole and own == sha256(sealed).digest() else b""


def add_shares(opener: Opener, shares: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the sum of (report id, sealed share) as little-endian 64-bit words. Raises ReportError."""
    opened = (opener.open(report_id.hex(), sealed) for report_id, sealed in shares)
    if opener.node == 0:
        return _add_words(opened, opener.size).tobytes()
    assert opener.study.protocol is not None
    return add_seeds(opener.study.protocol.expansion, opened, opener.size).tobytes()


def add_seeds(expansion: str, seeds: Iterable[bytes], size: int) -> Words:
    """Return the sum of the vectors of `size` bytes that seeds of 32 bytes expand to."""
    if expansion != "chacha20":
        return _add_words((secure_sum.expand(expansion, seed, size) for seed in seeds), size)
    total, zeros = np.zeros(size // WORD_BYTES, dtype="<u8"), bytes(size)
    at_once = max(1, min(MOST_AT_ONCE, CACHE_BYTES // size))
    buffer = memoryview(bytearray(at_once * size))
    places = [buffer[row * size : (row + 1) * size] for row in range(at_once)]
    rows = np.frombuffer(buffer, dtype="<u8").reshape(at_once, -1)
    # One cipher object gets each key in turn: making a new one takes as long as its stream.
    algorithm = ChaCha20(bytes(secure_sum.SEED_BYTES), secure_sum.NONCE)
    cipher, remaining = Cipher(algorithm, mode=None), iter(seeds)
    while batch := list(islice(remaining, at_once)):
        for place, seed in zip(places, batch):
            algorithm.key = seed
            cipher.encryptor().update_into(zeros, place)
        total += np.add.reduce(rows[: len(batch)], axis=0)
    return total


def _add_words(shares: Iterable[bytes], size: int) -> Words:
    total = np.zeros(size // WORD_BYTES, dtype="<u8")
    for share in shares:
        total += np.frombuffer(share, dtype="<u8")
    return total
