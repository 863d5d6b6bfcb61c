"""Opening sealed shares, expanding seeds, and adding modulo 2**64, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from ldp_client import mechanism_for
from ldp_client.secure_sum.expansion import NONCE, SEED_BYTES, expand
from ldp_client.secure_sum.sealing import OVERHEAD_BYTES, context, suite
from schemas import Study
from schemas.errors import ReportError


@dataclass(frozen=True)
class Opener:
    """Opens one node's shares for one study.

    node: its place in the route; the first gets words, each other a seed. size: bytes of the vector.
    """

    study: Study
    node: int
    size: int
    key: X25519PrivateKey

    @classmethod
    def of(cls, study: Study, node: int, key: X25519PrivateKey) -> Opener:
        """For the node at this place."""
        size = sum(mechanism_for(question).payload_size for question in study.questions)
        return cls(study, node, size, key)

    @property
    def share_size(self) -> int:
        """Bytes of a share before it is sealed."""
        return SEED_BYTES if self.node else self.size

    def open(self, report_id: str, sealed: bytes) -> bytes:
        """A share. Raises ReportError for one that was not sealed to this node for this report."""
        if len(sealed) != self.share_size + OVERHEAD_BYTES:
            raise ReportError(
                "share", f"must have {self.share_size + OVERHEAD_BYTES} bytes, has {len(sealed)}"
            )
        info = context(self.study.digest, report_id, self.node)
        try:
            share: bytes = suite().decrypt(sealed, self.key, info=info)
        except (InvalidTag, ValueError):
            raise ReportError("share", "was not sealed to this node for this study and report") from None
        return share


def add_shares(opener: Opener, shares: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The sum of (report id, sealed share), as little-endian 64-bit words. Raises ReportError."""
    total = np.zeros(opener.size // 8, dtype="<u8")
    expander = Expander(opener.study.route.expansion if opener.study.route else "", opener.size)
    for report_id, sealed in shares:
        share = opener.open(report_id.hex(), sealed)
        total += expander.words(share) if opener.node else np.frombuffer(share, dtype="<u8")
    return total.tobytes()


class Expander:
    """`expand` into one buffer that is used again and again."""

    def __init__(self, expansion: str, size: int) -> None:
        self._expansion = expansion
        self._zeros = bytes(size)
        self._buffer = bytearray(size)
        self._words = np.frombuffer(self._buffer, dtype="<u8")

    def words(self, seed: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """The share that a seed stands for; overwritten by the next call."""
        if self._expansion == "chacha20":
            Cipher(ChaCha20(seed, NONCE), mode=None).encryptor().update_into(self._zeros, self._buffer)
            return self._words
        return np.frombuffer(expand(self._expansion, seed, len(self._zeros)), dtype="<u8")
