"""The private operation on blinded messages: by the Chinese remainder theorem, masked, and checked.

A fault in one half of the operation reveals the factors to anyone who sees the result (Boneh, DeMillo and
Lipton 1997), and the time of an exponentiation depends on its base. So each base is masked with a random
number, and a result is returned only if the public exponent turns it back into the request.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple, cast

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from ldp_client.core.tokens import SIGNATURE_BYTES
from ldp_client.documents.channel import EXPONENT, MODULUS_BYTES, SPKI_HEAD, SPKI_TAIL


class FaultError(Exception):
    """A signature was wrong and was discarded: memory or processor are faulty."""


class SigningKey(NamedTuple):
    """The numbers of a private key (RFC 8017, section 3.2)."""

    n: int
    p: int
    q: int
    d_p: int
    d_q: int
    q_inverse: int

    @classmethod
    def load(cls, private: bytes) -> SigningKey:
        """Read a key from PKCS #8."""
        key = serialization.load_der_private_key(private, password=None)
        numbers = cast(rsa.RSAPrivateKey, key).private_numbers()
        n = numbers.public_numbers.n
        return cls(n, numbers.p, numbers.q, numbers.dmp1, numbers.dmq1, numbers.iqmp)

    def sign(self, blinded: bytes) -> bytes | None:
        """Sign a blinded message (RFC 9474, section 4.3); return None if it is no number below the modulus.

        Raises FaultError.
        """
        asked = int.from_bytes(blinded, "big")
        if len(blinded) != MODULUS_BYTES or not 0 < asked < self.n:
            return None
        mask, unmask = self._mask()
        signature = self._power(asked * mask % self.n) * unmask % self.n
        if pow(signature, EXPONENT, self.n) != asked:
            raise FaultError
        return signature.to_bytes(SIGNATURE_BYTES, "big")

    def _mask(self) -> tuple[int, int]:
        """Return a random number raised to the public exponent, and the inverse of that number."""
        while True:
            number = 1 + secrets.randbelow(self.n - 1)
            try:
                return pow(number, EXPONENT, self.n), pow(number, -1, self.n)
            except ValueError:
                # The number shares a prime with the modulus.
                continue

    def _power(self, base: int) -> int:
        of_p = pow(base % self.p, self.d_p, self.p)
        of_q = pow(base % self.q, self.d_q, self.q)
        return of_q + self.q * ((of_p - of_q) * self.q_inverse % self.p)


def new_pair() -> tuple[bytes, bytes]:
    """Make a key; return its SubjectPublicKeyInfo, as studies name it, and its PKCS #8, both in DER."""
    key = rsa.generate_private_key(EXPONENT, 8 * MODULUS_BYTES)
    modulus = key.public_key().public_numbers().n.to_bytes(MODULUS_BYTES, "big")
    private = key.private_bytes(
        serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return SPKI_HEAD + modulus + SPKI_TAIL, private
