"""Blind RSA signatures (RFC 9474) in plain integers, wherever Python runs: RSABSSA with SHA-384 and PSS.

Who signs sees a number that is as likely for every message, so that nothing joins the signature to who asked
for it. A modulus is bytes, big-endian, its first bit set. What is secret here is the blinding factor alone.
"""

from ldp_client.core.sha384 import SIZE, sha384

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Optional

    Random = Callable[[int], bytes]

EXPONENT = 65537
SALT_BYTES = SIZE
# So many more bits than a modulus has make a remainder as good as even.
_SPARE_BYTES = 16


class Blinded:
    """A message that was blinded, and what a signature on it needs to become one on the message.

    sent: what the signer gets. factor: the secret; whoever knows it joins both.
    """

    def __init__(self, sent: bytes, factor: int) -> None:
        self.sent = sent
        self.factor = factor


def draw_factor(modulus: bytes, random: "Random") -> int:
    """A blinding factor, even among the numbers below the modulus but for less than 2**-128."""
    n = int.from_bytes(modulus, "big")
    return 1 + int.from_bytes(random(len(modulus) + _SPARE_BYTES), "big") % (n - 1)


def blind(modulus: bytes, message: bytes, salt: bytes, factor: int) -> "Optional[Blinded]":
    """Blind a message (RFC 9474, section 4.2), None where message or factor share a divisor with the modulus.

    Who gets None could factor the modulus: it does not happen with a modulus of two primes.
    """
    n = int.from_bytes(modulus, "big")
    encoded = int.from_bytes(encode(message, salt, 8 * len(modulus) - 1), "big")
    if not (0 < factor < n) or common_divisor(encoded, n) != 1 or common_divisor(factor, n) != 1:
        return None
    sent = encoded * pow(factor, EXPONENT, n) % n
    return Blinded(sent.to_bytes(len(modulus), "big"), factor)


def finalize(
    modulus: bytes,
    message: bytes,
    signed: bytes,
    factor: int,
    random: "Random",
    salt_bytes: int = SIZE,
) -> "Optional[bytes]":
    """Take the blinding off a signature (RFC 9474, section 4.4), None unless it is one on the message."""
    n = int.from_bytes(modulus, "big")
    number = int.from_bytes(signed, "big")
    if len(signed) != len(modulus) or number >= n:
        return None
    unblinded = number * inverse(factor, modulus, random) % n
    signature = unblinded.to_bytes(len(modulus), "big")
    return signature if is_signed(modulus, message, signature, salt_bytes) else None


def is_signed(modulus: bytes, message: bytes, signature: bytes, salt_bytes: int = SIZE) -> bool:
    """RSASSA-PSS-VERIFY with SHA-384 (RFC 8017, section 8.1.2), for exponent 65537."""
    n, s = int.from_bytes(modulus, "big"), int.from_bytes(signature, "big")
    if len(signature) != len(modulus) or s >= n:
        return False
    bits = 8 * len(modulus) - 1
    encoded = pow(s, EXPONENT, n)
    size = (bits + 7) // 8
    return encoded >> bits == 0 and _fits(message, encoded.to_bytes(size, "big"), bits, salt_bytes)


def encode(message: bytes, salt: bytes, bits: int) -> bytes:
    """EMSA-PSS-ENCODE (RFC 8017, section 9.1.1)."""
    size = (bits + 7) // 8
    digest = sha384(bytes(8) + sha384(message) + salt)
    block = bytes(size - len(salt) - SIZE - 2) + b"\x01" + salt
    masked = _masked(block, digest, bits)
    return masked + digest + b"\xbc"


def _fits(message: bytes, encoded: bytes, bits: int, salt_bytes: int) -> bool:
    """EMSA-PSS-VERIFY: the one encoding with this salt is made again and compared as a whole."""
    digest = encoded[-SIZE - 1 : -1]
    block = _masked(encoded[: -SIZE - 1], digest, bits)
    salt = block[len(block) - salt_bytes :]
    return encode(message, salt, bits) == encoded


def _masked(block: bytes, seed: bytes, bits: int) -> bytes:
    """With MGF1 over it, and the bits above the encoding's length cleared."""
    mask = b""
    while len(mask) < len(block):
        mask += sha384(seed + (len(mask) // SIZE).to_bytes(4, "big"))
    mixed = int.from_bytes(block, "big") ^ int.from_bytes(mask[: len(block)], "big")
    kept = 8 * len(block) - (-bits % 8)
    return (mixed & ((1 << kept) - 1)).to_bytes(len(block), "big")


def inverse(number: int, modulus: bytes, random: "Random") -> int:
    """The inverse of a number modulo the modulus. Raises ValueError where they share a divisor.

    Euclid's steps depend on what they are given: here that is its product with another random number.
    """
    n = int.from_bytes(modulus, "big")
    while True:
        mask = draw_factor(modulus, random)
        product = number * mask % n
        divisor, found = _euclid(product, n)
        if divisor == 1:
            return found * mask % n
        if common_divisor(number, n) != 1:
            raise ValueError(len(modulus))


def common_divisor(one: int, other: int) -> int:
    """The greatest one."""
    while other:
        one, other = other, one % other
    return one


def _euclid(number: int, n: int) -> "tuple[int, int]":
    """Their greatest common divisor, and what the number has to be multiplied with to make it modulo n."""
    old, rest = number, n
    factor, following = 1, 0
    while rest:
        quotient = old // rest
        old, rest = rest, old - quotient * rest
        factor, following = following, factor - quotient * following
    return old, factor % n
