"""A device's part in a secure sum (Heikkilä et al. 2017, Algorithm 1): secret shares, one for each node.

An answer to a secure sum leaves a device only this way. Its vector of 64-bit words is split into shares
that sum to it modulo 2**64. All shares but one come from short seeds. A stream cipher's key stream, or an
XOF, expands a seed of 32 bytes to a share of any length: ChaCha20 from `cryptography`, or SHAKE-256 from
Python itself. A seed is used once, so the cipher's nonce is zero. A share is sealed to its node by HPKE
(RFC 9180) with X25519, HKDF-SHA256 and ChaCha20-Poly1305 from `cryptography`.

All nodes of a study together can read every answer exactly, and the study's author names them. So the
device's owner must list the nodes whose operators would not all collude (`Policy`).
"""

import struct
from functools import lru_cache
from typing import Any

from ldp_client.answering import quantise_answers
from ldp_client.core.randomness import Source, read, urandom
from ldp_client.documents.channel import MODULUS, WORD_BYTES
from ldp_client.documents.errors import MissingExtraError, RefusedError
from ldp_client.documents.report import SECRET_BYTES, Report, report_id_of
from ldp_client.documents.study import Study

SEED_BYTES = 32
NONCE = bytes(16)


def expand(expansion: str, seed: bytes, size: int) -> bytes:
    """Expand a seed to `size` bytes. Raises MissingExtraError for "chacha20" without `cryptography`."""
    if expansion == "shake_256":
        from hashlib import shake_256

        return shake_256(seed).digest(size)
    ciphers = _primitives("ciphers")
    cipher = ciphers.Cipher(ciphers.algorithms.ChaCha20(seed, NONCE), mode=None)
    stream: bytes = cipher.encryptor().update(bytes(size))
    return stream


def _primitives(name: str) -> Any:
    """Return a module of `cryptography`. Raises MissingExtraError."""
    from importlib import import_module

    try:
        return import_module(f"cryptography.hazmat.primitives.{name}")
    except ImportError:
        raise MissingExtraError("secure-sum", "cryptography") from None


def split(vector: bytes, shares: int, expansion: str, random: Source = urandom) -> list[bytes]:
    """Split a vector into `shares` pieces: first words, then seeds that `expand` turns into words.

    vector: little-endian 64-bit words. Any `shares` − 1 pieces are independent of the vector.
    """
    layout = f"<{len(vector) // WORD_BYTES}Q"
    left = list(struct.unpack(layout, vector))
    seeds = [read(random, SEED_BYTES) for _ in range(shares - 1)]
    for seed in seeds:
        mask = struct.unpack(layout, expand(expansion, seed, len(vector)))
        left = [(word - part) % MODULUS for word, part in zip(left, mask)]
    return [struct.pack(layout, *left), *seeds]


CONTEXT = b"ldpkit.share/1"
OVERHEAD_BYTES = 48


def context(digest: str, report_id: str, node: int) -> bytes:
    """Return HPKE's info, which binds a share to its study document, report and node."""
    return b"\0".join([CONTEXT, digest.encode(), report_id.encode(), str(node).encode()])


def seal(sealing_key: bytes, info: bytes, share: bytes) -> bytes:
    """Encrypt a share so that only the owner of the X25519 key can read it. Adds 48 bytes.

    Raises MissingExtraError without `cryptography`, and RefusedError for a key of low order, under which
    anybody could read the share.
    """
    public_key = _primitives("asymmetric.x25519").X25519PublicKey
    try:
        sealed: bytes = suite().encrypt(share, public_key.from_public_bytes(sealing_key), info=info)
    except ValueError:
        raise RefusedError(
            f"the sealing key {sealing_key.hex()} of a node hides nothing: nothing was sent. "
            "Ask the node's operator for its address",
            code="device.node_key_weak",
        ) from None
    return sealed


@lru_cache(maxsize=1)
def suite() -> Any:
    """Return the only HPKE suite that is used. Raises MissingExtraError."""
    hpke = _primitives("hpke")
    return hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.CHACHA20_POLY1305)


def share_path(study_id: str, report_id: str) -> str:
    """Return the path at which a node accepts a report's share."""
    return f"/v1/studies/{study_id}/shares/{report_id}"


TOKEN_CONTEXT = b"ldpkit.share-token/1"
# Header that is sent with a token: SHA-256 of each sealed share, in hexadecimal digits.
SHARES = "LDPKit-Shares"


def shares_nonce(report_id: str, digests: bytes) -> bytes:
    """Return the nonce of a token that admits only this report's sealed shares, at any node.

    digests: SHA-256 of each sealed share, in the nodes' order. Sealing is random, so the nonce is too.
    """
    from hashlib import sha256

    return sha256(TOKEN_CONTEXT + bytes.fromhex(report_id) + digests).digest()


def sealed_shares(
    study: Study, mechanisms: dict[str, Any], answers: dict[str, Any]
) -> tuple[Report, list[bytes]]:
    """Return a report without payloads, with a fresh id and its secret, and one sealed share for each node.

    The caller has checked that the device's owner trusts the nodes. Everything else is checked before any
    noise is drawn. Raises AnswerError, and RefusedError for a study that takes shares without tokens.
    """
    protocol = study.protocol
    assert protocol is not None
    if study.channel is None or study.channel.tickets is None:
        # Anyone could send many shares, and so choose whom a person's answer is summed with.
        raise RefusedError(
            f"study {study.id} is a secure sum without tokens: anyone could send many shares and leave this "
            "answer alone in the sum. Ask its author for a study with tokens",
            code="device.sum_without_tokens",
        )
    quantised = quantise_answers(study, mechanisms, answers)
    vector = b"".join([mechanisms[name].noisy_vector(value, urandom) for name, value in quantised])
    secret = read(urandom, SECRET_BYTES)
    report = Report(report_id_of(secret), study.id, study.version, study.digest, {}, 0, secret)
    shares = split(vector, len(protocol.nodes), protocol.expansion)
    sealed = [
        seal(node.sealing_key, context(study.digest, report.id, index), share)
        for index, (node, share) in enumerate(zip(protocol.nodes, shares))
    ]
    return report, sealed
