"""A node's signed statements: the reports that it holds after the close, and its sum."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ldp_client.documents.canonical import canonical_json, to_base64
from ldp_client.documents.channel import MOST_DEVICES
from ldp_client.documents.errors import StatementError
from ldp_client.documents.fields import Base64, Constant, Hex, Identifier, Integer, OneOf
from ldp_client.documents.report import ID_BYTES
from ldp_client.documents.shapes import Record

FORMAT = "ldpkit.node-statement/1"
STATEMENT = Record(
    {
        "format": Constant(FORMAT),
        "kind": OneOf(("draw", "sum")),
        "study": Identifier(),
        "digest": Hex(64),
        "node": Integer(0, 31),
        "devices": Integer(0, MOST_DEVICES),
        "set": Hex(64),
        "total": Hex(64),
        "signature": Base64(),
    }
)


@dataclass(frozen=True)
class Statement:
    """A statement by a node.

    Attributes:
        kind: "draw" or "sum". "draw": `set` has everything that the node holds after the close, and `total`
            is the SHA-256 of its nonce. "sum": the node has summed this set and no other ever, and `total`
            is the sum's SHA-256.
        node: its place in the study's protocol.
        devices: how many reports the set has.
        set: `set_digest` of the set.
        signature: of all other members.
    """

    kind: str
    study: str
    digest: str
    node: int
    devices: int
    set: str
    total: str
    signature: bytes = b""
    format: str = FORMAT

    def signed(self, key: Ed25519PrivateKey) -> Statement:
        """Return the statement with the node's signature."""
        return replace(self, signature=key.sign(self._message()))

    def check(self, signing_key: bytes) -> None:
        """Raise StatementError unless the owner of this Ed25519 key signed it."""
        try:
            Ed25519PublicKey.from_public_bytes(signing_key).verify(self.signature, self._message())
        except (InvalidSignature, ValueError):
            raise StatementError(
                "signature", f"is not by node {self.node}", code="statement.wrong_signature"
            ) from None

    @property
    def subject(self) -> tuple[str, str, str, int, int, str]:
        """Return the members that identify the subject, without the total."""
        return self.kind, self.study, self.digest, self.node, self.devices, self.set

    def to_document(self) -> dict[str, Any]:
        """Return the plain JSON value."""
        return {**asdict(self), "signature": to_base64(self.signature)}

    @classmethod
    def from_document(cls, document: Any) -> Statement:
        """Validate a plain JSON value; the signature is checked by `check`. Raises StatementError."""
        return cls(**STATEMENT.read(document, "", StatementError))

    def _message(self) -> bytes:
        return canonical_json(replace(self, signature=b"").to_document()).encode()


def set_digest(ids: Sequence[bytes]) -> str:
    """Return the SHA-256 of report ids in ascending order."""
    return sha256(b"".join(ids)).hexdigest()


def split_ids(joined: bytes) -> list[bytes]:
    """Split concatenated report ids. Raises StatementError unless they ascend strictly."""
    ids = [joined[start : start + ID_BYTES] for start in range(0, len(joined), ID_BYTES)]
    if len(joined) % ID_BYTES or any(left >= right for left, right in itertools.pairwise(ids)):
        raise StatementError(
            "set", "must be report ids of 16 bytes in ascending order, each once", code="statement.wrong_set"
        )
    return ids
