"""Sealing a share to its node: HPKE (RFC 9180), X25519, HKDF-SHA256, ChaCha20-Poly1305, from `cryptography`.

A device without that package passes a `seal` of its platform with the same three arguments.
"""

from ldp_client.documents.errors import MissingExtraError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    Seal = Callable[[bytes, bytes, bytes], bytes]

CONTEXT = b"ldpkit.share/1"
OVERHEAD_BYTES = 48


def context(digest: str, report_id: str, node: int) -> bytes:
    """HPKE's info: the study document, the report and the node that a share is for, and no other."""
    return b"\0".join([CONTEXT, digest.encode(), report_id.encode(), str(node).encode()])


def seal(sealing_key: bytes, info: bytes, share: bytes) -> bytes:
    """The share, readable by the owner of the X25519 key alone; 48 bytes longer.

    Raises MissingExtraError without `cryptography`.
    """
    try:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
    except ImportError:
        raise MissingExtraError("secure-sum", "cryptography") from None
    sealed: bytes = suite().encrypt(share, X25519PublicKey.from_public_bytes(sealing_key), info=info)
    return sealed


_suites: "list[Any]" = []


def suite() -> "Any":
    """The one HPKE suite that is used."""
    if not _suites:
        _suites.append(_load_suite())
    return _suites[0]


def _load_suite() -> "Any":
    try:
        from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
    except ImportError:
        raise MissingExtraError("secure-sum", "cryptography") from None
    return Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
