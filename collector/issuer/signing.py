"""The private operation on blinded messages: by the Chinese remainder theorem, masked, and checked.

A fault in one half of the operation reveals the factors to anyone who sees the result (Boneh, DeMillo and
Lipton 1997), and the time of an exponentiation depends on its base. So each base is masked with a random
number, and a result is returned only if the public exponent turns it back into the request.
"""

import secrets
from functools import lru_cache
from typing import cast

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateKey,
    RSAPrivateNumbers,
    generate_private_key,
)

from ldp_client.core.tokens import SIGNATURE_BYTES
from ldp_client.documents.channel import EXPONENT, MODULUS_BYTES, SPKI_HEAD, SPKI_TAIL


class FaultError(Exception):
    """A signature was wrong and was discarded: memory or processor are faulty."""


@lru_cache(maxsize=256)
def load_key(private: bytes) -> RSAPrivateNumbers:
    """Read a key from PKCS #8."""
    key = serialization.load_der_private_key(private, password=None)
    return cast(RSAPrivateKey, key).private_numbers()


def sign(key: RSAPrivateNumbers, blinded: bytes) -> bytes:
    """Sign a blinded message, a number below the modulus (RFC 9474, section 4.3). Raises FaultError."""
    asked, n = int.from_bytes(blinded, "big"), key.public_numbers.n
    number = 1 + secrets.randbelow(n - 1)
    mask, unmask = pow(number, EXPONENT, n), pow(number, -1, n)
    signature = private_power(key, asked * mask % n) * unmask % n
    if pow(signature, EXPONENT, n) != asked:
        raise FaultError
    return signature.to_bytes(SIGNATURE_BYTES, "big")


def private_power(key: RSAPrivateNumbers, base: int) -> int:
    """Raise a number to the private exponent."""
    of_p = pow(base % key.p, key.dmp1, key.p)
    of_q = pow(base % key.q, key.dmq1, key.q)
    return of_q + key.q * ((of_p - of_q) * key.iqmp % key.p)


def new_pair() -> tuple[bytes, bytes]:
    """Make a key; return its SubjectPublicKeyInfo, as studies name it, and its PKCS #8, both in DER."""
    key = generate_private_key(EXPONENT, 8 * MODULUS_BYTES)
    modulus = key.public_key().public_numbers().n.to_bytes(MODULUS_BYTES, "big")
    private = key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return SPKI_HEAD + modulus + SPKI_TAIL, private
