"""A node's signed statements: the reports that it holds, the set that it confirmed, and its sum."""

from __future__ import annotations

import itertools
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ldp_client.documents.canonical import canonical_json
from ldp_client.documents.errors import DocumentError, StatementError
from ldp_client.documents.fields import Constant, Hex, Identifier, Integer, OneOf, Text
from ldp_client.documents.protocol import MOST_DEVICES
from ldp_client.documents.report import ID_BYTES
from ldp_client.documents.shapes import Record

FORMAT = "ldpkit.node-statement/1"
NO_TOTAL = "0" * 64
STATEMENT = Record(
    {
        "format": Constant(FORMAT),
        "kind": OneOf(("draw", "set", "sum")),
        "study": Identifier(),
        "digest": Hex(64),
        "node": Integer(0, 31),
        "devices": Integer(0, MOST_DEVICES),
        "set": Hex(64),
        "total": Hex(64),
        "signature": Text(100, empty=True),
    }
)


class Nested:
    """A member that is a document of its own. parse: reads it. shape: what it may be."""

    def __init__(self, parse: Callable[[Any], Any], shape: Record) -> None:
        self._parse = parse
        self._shape = shape

    def read(self, value: Any, path: str, error: type[DocumentError]) -> Any:
        """Return the parsed document. Raises StatementError."""
        del path, error
        return self._parse(value)

    def json_schema(self) -> dict[str, Any]:
        """Return the same rule as JSON Schema."""
        return self._shape.json_schema()


@dataclass(frozen=True)
class Statement:
    """A statement by a node.

    Attributes:
        kind: "draw", "set" or "sum", in this order. "draw": `set` has everything that the node holds after
            the
            close, and `total` is the SHA-256 of its nonce. "set": the node will sum this set and no other.
            "sum": it
            has summed the set, and `total` is the sum's SHA-256.
        node: its place in the study's protocol.
        devices: how many reports the set has.
        set: `set_digest` of the set.
    """

    kind: str
    study: str
    digest: str
    node: int
    devices: int
    set: str
    total: str = NO_TOTAL
    signature: str = ""

    def signed(self, key: Ed25519PrivateKey) -> Statement:
        """Return the statement with the node's signature."""
        signature = b2a_base64(key.sign(self._message()), newline=False).decode()
        return replace(self, signature=signature)

    def check(self, signing_key: bytes) -> None:
        """Raise StatementError unless the owner of this Ed25519 key signed it."""
        try:
            signature = a2b_base64(self.signature)
            if b2a_base64(signature, newline=False).decode() != self.signature:
                raise ValueError
            Ed25519PublicKey.from_public_bytes(signing_key).verify(signature, self._message())
        except (InvalidSignature, ValueError):
            raise StatementError(
                "signature", f"is not that of node {self.node}", code="statement.wrong_signature"
            ) from None

    @property
    def subject(self) -> tuple[str, str, str, int, int, str]:
        """Return the members that identify the subject, without the total."""
        return self.kind, self.study, self.digest, self.node, self.devices, self.set

    def to_document(self) -> dict[str, Any]:
        """Return the plain JSON value."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_document(cls, document: Any) -> Statement:
        """Validate a plain JSON value; the signature is checked by `check`. Raises StatementError."""
        parsed = STATEMENT.read(document, "", StatementError)
        del parsed["format"]
        return cls(**parsed)

    def _message(self) -> bytes:
        return canonical_json(replace(self, signature="").to_document()).encode()


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
