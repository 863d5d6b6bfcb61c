"""From a 32-byte seed to a share of any length: a stream cipher's key stream, or an XOF.

Both are standard and come from libraries: ChaCha20 from `cryptography`, SHAKE-256 from Python itself.
A seed is used once, so the cipher's nonce is zero.
"""

import hashlib

from ldp_client.documents.errors import MissingExtraError

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
