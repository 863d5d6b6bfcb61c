"""Public keys and verification of their signatures, in plain integers.

Keys are PEM (SubjectPublicKeyInfo, RFC 7468). Only RSA with a modulus of 3072 bits and exponent 65537
(RFC 8017) is accepted. It is recognised by its fixed DER bytes, so no ASN.1 is parsed. A weaker key or
exponent cannot be expressed.
"""

import hashlib
from typing import NamedTuple, Self

from ldp_client.documents.errors import DocumentError, InputError
from ldp_client.documents.fields import Base64

BEGIN, END = "-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----"
RSA_BITS = 3072
RSA_BYTES = RSA_BITS // 8
RSA_EXPONENT = 65537
_RSA_HEAD = bytes.fromhex("308201a2300d06092a864886f70d01010105000382018f003082018a0282018100")
_RSA_TAIL = bytes.fromhex("0203010001")
# DigestInfo of SHA-256 (RFC 8017, 9.2, note 1).
_SHA256_HEAD = bytes.fromhex("3031300d060960864801650304020105000420")


class PublicKey(NamedTuple):
    """A key that may sign studies.

    id: SHA-256 of the DER, in hexadecimal digits. value: the RSA modulus, big-endian.
    """

    id: str
    value: bytes

    @classmethod
    def from_pem(cls, text: str) -> Self:
        """Read one PEM block. Raises InputError for anything but the known kind."""
        lines = [line.strip() for line in text.strip().split("\n")]
        try:
            # DocumentError also for another kind of block.
            block = "".join(lines[1:-1]) if (lines[0], lines[-1]) == (BEGIN, END) else None
            der = Base64().read(block, "", DocumentError)
        except DocumentError:
            raise InputError.say("core.key_block", begin=BEGIN, end=END) from None
        value = der[len(_RSA_HEAD) : -len(_RSA_TAIL)]
        if der == _RSA_HEAD + value + _RSA_TAIL and len(value) == RSA_BYTES and value[0] & 128:
            return cls(hashlib.sha256(der).hexdigest(), value)
        raise InputError.say("core.key_kind")


def is_signed_by_rsa(message: bytes, signature: bytes, modulus: bytes) -> bool:
    """Verify a signature by RSASSA-PKCS1-v1_5-VERIFY with SHA-256 (RFC 8017, 8.2.2), exponent 65537.

    Rebuilds the only encoding that a valid signature can have and compares all of it. Parsing the signer's
    bytes instead would allow forgeries (Bleichenbacher 2006).
    """
    n, s = int.from_bytes(modulus, "big"), int.from_bytes(signature, "big")
    if len(signature) != len(modulus) or s >= n:
        return False
    return pow(s, RSA_EXPONENT, n) == int.from_bytes(encoded(message, len(modulus)), "big")


def encoded(message: bytes, size: int) -> bytes:
    """Encode a message by EMSA-PKCS1-v1_5 with SHA-256 (RFC 8017, 9.2) in `size` bytes."""
    digest_info = _SHA256_HEAD + hashlib.sha256(message).digest()
    return b"\x00\x01" + b"\xff" * (size - 3 - len(digest_info)) + b"\x00" + digest_info
