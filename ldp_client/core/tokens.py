"""Tokens of type 0x0002 (RFC 9578, section 6) for one version of one study, and their header (RFC 9577).

The challenge is never fetched: device and collector derive it from the study's digest and its issuer's name,
so a token is valid for exactly one version of one study.
"""

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode

from ldp_client.core.blind_rsa import SALT_BYTES, blind, draw_factor, finalize
from ldp_client.core.randomness import Source, read
from ldp_client.documents.channel import TokenKey

TYPE = b"\x00\x02"
NONCE_BYTES = 32
SIGNATURE_BYTES = 256
# Type, nonce, the challenge's digest and the key's digest. The signature follows.
INPUT_BYTES = 2 + 3 * 32
TOKEN_BYTES = INPUT_BYTES + SIGNATURE_BYTES
REQUEST_BYTES = 2 + 1 + SIGNATURE_BYTES
REQUEST_TYPE = "application/private-token-request"
RESPONSE_TYPE = "application/private-token-response"
SCHEME = "PrivateToken"


def challenge_of(issuer: str, digest: str) -> bytes:
    """Return the TokenChallenge (RFC 9577, 2.1.1). issuer: its name; digest: the study's, in hex digits."""
    name, context = issuer.encode("utf-8"), bytes.fromhex(digest)
    sizes = (len(name).to_bytes(2, "big"), bytes([len(context)]))
    return TYPE + sizes[0] + name + sizes[1] + context + bytes(2)


def key_id_of(spki: bytes) -> bytes:
    """Return a token key's id (RFC 9578, section 6.5)."""
    return hashlib.sha256(spki).digest()


def short_id_of(spki: bytes) -> int:
    """Return the last byte of a key's id, by which a request names its key."""
    return key_id_of(spki)[-1]


def input_of(nonce: bytes, challenge: bytes, spki: bytes) -> bytes:
    """Return the bytes that a token's signature signs."""
    return TYPE + nonce + hashlib.sha256(challenge).digest() + key_id_of(spki)


class Asking:
    """A request for a token, and the state to finish the token. The same arguments give the same request.

    Args:
        key: the study's key.
        challenge: from `challenge_of`.
        nonce: 32 random bytes.
        salt: 48 random bytes.
        factor: from `draw_factor`.

    Raises:
        ValueError: the key's modulus is not a product of two primes.
    """

    def __init__(self, key: TokenKey, challenge: bytes, nonce: bytes, salt: bytes, factor: int) -> None:
        self._modulus = key.modulus
        self._input = input_of(nonce, challenge, key.spki)
        blinded = blind(key.modulus, self._input, salt, factor)
        if blinded is None:
            raise ValueError(len(key.modulus))
        self.factor = factor
        self.body = TYPE + bytes([short_id_of(key.spki)]) + blinded

    def token(self, response: bytes, random: Source) -> bytes | None:
        """Return the token from the issuer's response; None if the study's key did not sign it."""
        signature = finalize(self._modulus, self._input, response, self.factor, random)
        return None if signature is None else self._input + signature


def draw(key: TokenKey, random: Source) -> tuple[bytes, bytes, int]:
    """Draw a nonce, a salt and a blinding factor for `Asking`.

    Raises:
        RandomnessError: the source is broken, or not a source of secrets.
    """
    nonce, salt = read(random, NONCE_BYTES), read(random, SALT_BYTES)
    return nonce, salt, draw_factor(key.modulus, lambda size: read(random, size))


def to_base64url(content: bytes) -> str:
    """Encode as base64url with padding, as these headers do."""
    return urlsafe_b64encode(content).decode()


def header_of(token: bytes) -> str:
    """Return the value of `Authorization` (RFC 9577, section 2.2.2)."""
    return SCHEME + _parameter(" token", token)


def challenge_header(challenge: bytes, spki: bytes) -> str:
    """Return the value of `WWW-Authenticate` (RFC 9577, section 2.1.2)."""
    return SCHEME + _parameter(" challenge", challenge) + _parameter(", token-key", spki)


def _parameter(name: str, content: bytes) -> str:
    return f'{name}="{to_base64url(content)}"'


def token_in(header: str) -> bytes | None:
    """Return the token in an `Authorization` value, or None for any other value."""
    scheme, _, rest = header.strip().partition(" ")
    name, equals, value = rest.strip().partition("=")
    if scheme.lower() != SCHEME.lower() or name.strip().lower() != "token" or not equals:
        return None
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = value[1:-1]
    # base64url with or without padding. The decoder skips what is not of its alphabet.
    bare = value.rstrip("=")
    try:
        token = urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except ValueError:
        return None
    is_exact = len(value) - len(bare) <= 2 and to_base64url(token).rstrip("=") == bare
    return token if is_exact and len(token) == TOKEN_BYTES else None
