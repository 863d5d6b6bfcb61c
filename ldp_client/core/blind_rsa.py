"""Blind RSA signatures (RFC 9474) in plain integers: RSABSSA with SHA-384 and PSS.

The signer sees a number that is equally likely for every message, so it cannot link the signature to the
requester. A modulus is big-endian bytes with the first bit set. Only the blinding factor is secret here.
"""

from hashlib import sha384
from math import gcd

from ldp_client.core.randomness import Source

EXPONENT = 65537
# The length of a SHA-384 digest.
SIZE = 48
SALT_BYTES = SIZE
# Extra random bytes beyond the modulus' length, so that the remainder is nearly uniform.
_SPARE_BYTES = 16


def draw_factor(modulus: bytes, random: Source) -> int:
    """Draw a blinding factor, uniform below the modulus up to a bias of less than 2**-128."""
    n = int.from_bytes(modulus, "big")
    return 1 + int.from_bytes(random(len(modulus) + _SPARE_BYTES), "big") % (n - 1)


def blind(modulus: bytes, message: bytes, salt: bytes, factor: int) -> bytes | None:
    """Blind a message for the signer (RFC 9474, section 4.2).

    None if message or factor share a divisor with the modulus. That would reveal a factor of the modulus, and
    does not occur with a product of two primes.
    """
    n = int.from_bytes(modulus, "big")
    encoded = int.from_bytes(encode(message, salt, 8 * len(modulus) - 1), "big")
    if not (0 < factor < n) or gcd(encoded, n) != 1 or gcd(factor, n) != 1:
        return None
    return (encoded * pow(factor, EXPONENT, n) % n).to_bytes(len(modulus), "big")


def finalize(modulus: bytes, message: bytes, signed: bytes, factor: int, random: Source) -> bytes | None:
    """Unblind a signature (RFC 9474, section 4.4). Return None if it is not valid for the message."""
    n = int.from_bytes(modulus, "big")
    number = int.from_bytes(signed, "big")
    if len(signed) != len(modulus) or number >= n:
        return None
    unblinded = number * inverse(factor, modulus, random) % n
    signature = unblinded.to_bytes(len(modulus), "big")
    return signature if is_signed(modulus, message, signature) else None


def is_signed(modulus: bytes, message: bytes, signature: bytes) -> bool:
    """Verify a signature by RSASSA-PSS-VERIFY with SHA-384 (RFC 8017, section 8.1.2), exponent 65537.

    The only encoding with its salt, of 48 bytes, is rebuilt and compared as a whole.
    """
    n, s = int.from_bytes(modulus, "big"), int.from_bytes(signature, "big")
    if len(signature) != len(modulus) or s >= n:
        return False
    bits = 8 * len(modulus) - 1
    number = pow(s, EXPONENT, n)
    if number >> bits:
        return False
    encoded = number.to_bytes((bits + 7) // 8, "big")
    block = _masked(encoded[: -SIZE - 1], encoded[-SIZE - 1 : -1], bits)
    return encode(message, block[-SIZE:], bits) == encoded


def encode(message: bytes, salt: bytes, bits: int) -> bytes:
    """Encode a message by EMSA-PSS-ENCODE (RFC 8017, section 9.1.1)."""
    size = (bits + 7) // 8
    digest = sha384(bytes(8) + sha384(message).digest() + salt).digest()
    block = bytes(size - len(salt) - SIZE - 2) + b"\x01" + salt
    masked = _masked(block, digest, bits)
    return masked + digest + b"\xbc"


def _masked(block: bytes, seed: bytes, bits: int) -> bytes:
    """Return the block XOR its MGF1 mask, with the bits above the encoding's length cleared."""
    mask = b""
    while len(mask) < len(block):
        mask += sha384(seed + (len(mask) // SIZE).to_bytes(4, "big")).digest()
    mixed = int.from_bytes(block, "big") ^ int.from_bytes(mask[: len(block)], "big")
    kept = 8 * len(block) - (-bits % 8)
    return (mixed & ((1 << kept) - 1)).to_bytes(len(block), "big")


def inverse(number: int, modulus: bytes, random: Source) -> int:
    """Return the inverse of a number modulo the modulus. Raises ValueError if they share a divisor.

    The steps of Euclid's algorithm depend on its input: here the number times another random number.
    """
    n = int.from_bytes(modulus, "big")
    while True:
        mask = draw_factor(modulus, random)
        try:
            return pow(number * mask % n, -1, n) * mask % n
        except ValueError:
            if gcd(number, n) != 1:
                raise ValueError(len(modulus)) from None
