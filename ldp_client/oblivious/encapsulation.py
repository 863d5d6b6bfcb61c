"""Requests and answers encapsulated for a gateway (RFC 9458), by HPKE (RFC 9180) in mode base.

One suite: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. `pyhpke` provides HPKE with its exporter.
"""

import os
from binascii import a2b_base64
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from hmac import digest
from typing import Any

from ldp_client.documents.canonical import to_base64
from ldp_client.documents.errors import MissingExtraError, UsageError
from ldp_client.oblivious.binary_http import REQUEST_SIZES

REQUEST_TYPE = "message/ohttp-req"
ANSWER_TYPE = "message/ohttp-res"
KEYS_TYPE = "application/ohttp-keys"
# The suite's three parts, by their numbers in the registries of RFC 9180.
KEM_ID, KDF_ID, AEAD_ID = 0x0020, 0x0001, 0x0001
SUITE = KDF_ID.to_bytes(2, "big") + AEAD_ID.to_bytes(2, "big")
POINT_BYTES = 32
HEADER_BYTES = 7
TAG_BYTES = 16
# The longer of an AES-128-GCM key and its nonce.
SECRET_BYTES = 16
NONCE_BYTES = 12
OVERHEAD_BYTES = HEADER_BYTES + POINT_BYTES + TAG_BYTES
ANSWER_OVERHEAD_BYTES = SECRET_BYTES + TAG_BYTES
# The longest encapsulated request.
MOST_MESSAGE_BYTES = REQUEST_SIZES[-1] + OVERHEAD_BYTES
# A key configuration has an id, a KEM, a public key, the length of the suites, and suites of 4 bytes.
_POINT_AT = 3
_LENGTH_AT = _POINT_AT + POINT_BYTES
_SUITES_AT = _LENGTH_AT + 2
# Sections 4.3 and 4.4: HPKE's info, and its exporter's label.
REQUEST_LABEL = b"message/bhttp request"
ANSWER_LABEL = b"message/bhttp response"


class EncapsulationError(ValueError):
    """The message is not encapsulated for this key, or was changed in transit."""


def configuration(key_id: int, public_key: bytes) -> bytes:
    """Return a key configuration (section 3.1) with the one suite. public_key: X25519, 32 bytes."""
    head = bytes([key_id]) + KEM_ID.to_bytes(2, "big") + public_key
    return head + len(SUITE).to_bytes(2, "big") + SUITE


def read_configuration(text: str) -> tuple[int, bytes]:
    """Return the number and the X25519 public key, 32 bytes, of the configuration that an app ships.

    Args:
        text: the configuration in base64, as `ldpkit ohttp` prints it.

    Raises:
        UsageError: the text is no configuration, or lacks the one suite that devices use.
    """
    try:
        raw = a2b_base64(text)
    except ValueError:
        raw = b""
    suites = raw[_SUITES_AT:]
    length = int.from_bytes(raw[_LENGTH_AT:_SUITES_AT], "big")
    is_whole = bool(suites) and len(suites) == length and length % 4 == 0 and to_base64(raw) == text
    known = [suites[start : start + 4] for start in range(0, length, 4)] if is_whole else []
    if SUITE not in known or raw[1:_POINT_AT] != KEM_ID.to_bytes(2, "big"):
        raise UsageError(
            "the key is no configuration of a gateway: pass the line that `ldpkit ohttp` prints",
            code="device.relay_configuration",
        )
    return raw[0], raw[_POINT_AT:_LENGTH_AT]


def header(key_id: int) -> bytes:
    """Return the first 7 bytes of an encapsulated request: which key, and which suite."""
    return bytes([key_id]) + KEM_ID.to_bytes(2, "big") + SUITE


class Asked:
    """An encapsulated request that can open its answer. message: the bytes to send."""

    def __init__(self, message: bytes, enc: bytes, context: Any) -> None:
        self.message = message
        self._enc = enc
        self._context = context

    def open(self, answer: bytes) -> bytes:
        """Return the content. Raises EncapsulationError unless `answer` is this request's intact answer."""
        nonce, sealed = answer[:SECRET_BYTES], answer[SECRET_BYTES:]
        if len(sealed) < TAG_BYTES:
            raise EncapsulationError("the answer is too short")
        cipher, iv = _answer_cipher(self._context, self._enc, nonce)
        with _opening():
            opened: bytes = cipher.decrypt(iv, sealed, None)
        return opened


def encapsulate(key_id: int, public_key: bytes, request: bytes, ephemeral: Any | None = None) -> Asked:
    """Encapsulate a request for the holder of an X25519 key.

    ephemeral: a KEMKeyPair of `pyhpke`; random unless a test passes a test vector's pair. Raises
    MissingExtraError without `pyhpke`.
    """
    recipient = suite().kem.deserialize_public_key(public_key)
    head = header(key_id)
    enc, context = suite().create_sender_context(recipient, REQUEST_LABEL + b"\0" + head, eks=ephemeral)
    return Asked(head + enc + context.seal(request), enc, context)


class Received:
    """An opened request that can encapsulate its answer. content: the request."""

    def __init__(self, content: bytes, enc: bytes, context: Any) -> None:
        self.content = content
        self._enc = enc
        self._context = context

    def answer(self, content: bytes, nonce: bytes = b"") -> bytes:
        """Encapsulate an answer that only the requester can open. nonce: random unless a test passes one."""
        fresh = nonce or os.urandom(SECRET_BYTES)
        cipher, iv = _answer_cipher(self._context, self._enc, fresh)
        sealed: bytes = cipher.encrypt(iv, content, None)
        return fresh + sealed


def decapsulate(private_key: Any, message: bytes) -> Received:
    """Open a request that begins with this key's header.

    private_key: an X25519PrivateKey of `cryptography`. Raises EncapsulationError if the request is not
    encapsulated for the key, or was changed.
    """
    from pyhpke import KEMKey

    head, enc = message[:HEADER_BYTES], message[HEADER_BYTES : HEADER_BYTES + POINT_BYTES]
    sealed = message[HEADER_BYTES + POINT_BYTES :]
    if len(sealed) < TAG_BYTES:
        raise EncapsulationError("the request is too short")
    key = KEMKey.from_pyca_cryptography_key(private_key)
    with _opening():
        context = suite().create_recipient_context(enc, key, REQUEST_LABEL + b"\0" + head)
        return Received(context.open(sealed), enc, context)


@contextmanager
def _opening() -> Iterator[None]:
    """Raise EncapsulationError for any library error about wrong bytes."""
    from cryptography.exceptions import InvalidTag
    from pyhpke import PyHPKEError

    try:
        yield
    except (InvalidTag, PyHPKEError, ValueError):
        raise EncapsulationError("not encapsulated for this key, or changed in transit") from None


def _answer_cipher(context: Any, enc: bytes, nonce: bytes) -> tuple[Any, bytes]:
    """Return the cipher of an answer, and its nonce (section 4.4)."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    # HKDF (RFC 5869): one block of expansion is enough for so few bytes.
    extracted = digest(enc + nonce, context.export(ANSWER_LABEL, SECRET_BYTES), "sha256")
    key = digest(extracted, b"key\x01", "sha256")[:SECRET_BYTES]
    return AESGCM(key), digest(extracted, b"nonce\x01", "sha256")[:NONCE_BYTES]


@lru_cache(maxsize=1)
def suite() -> Any:
    """Return the one suite. Raises MissingExtraError."""
    try:
        from pyhpke import AEADId, CipherSuite, KDFId, KEMId
    except ImportError:
        raise MissingExtraError("oblivious", "pyhpke") from None
    return CipherSuite.new(KEMId.DHKEM_X25519_HKDF_SHA256, KDFId.HKDF_SHA256, AEADId.AES128_GCM)
