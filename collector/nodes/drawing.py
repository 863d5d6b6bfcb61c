"""The set that a sum is over, drawn by all nodes together once the study is closed.

Each node commits to the reports that it holds and to a nonce before it sees another node's nonce, and shows
the nonce only for one list of all commitments. So while reports can still be sent, left out or chosen, the
drawn set is unknown to senders, to the operator who closes, and to every node while another node is honest.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from heapq import nsmallest
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from ldp_client.documents.canonical import canonical_json, to_base64
from ldp_client.documents.channel import MOST_DEVICES
from ldp_client.documents.errors import StatementError
from ldp_client.documents.fields import Base64, Constant, Hex, Identifier, Integer, OneOf
from ldp_client.documents.report import ID_BYTES
from ldp_client.documents.shapes import ListOf, Record
from schemas import Study

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


# Different prefixes keep the two uses of the hash apart.
SEED_PREFIX, PLACE_PREFIX = b"ldpkit.draw-seed/1\0", b"ldpkit.draw-place/1\0"
NONCE_BYTES = 32
# Bytes with a report's bit for each node that holds it. A drawing has them and the id in base64.
HOLDERS_BYTES = 4
BYTES_A_REPORT = -(-(ID_BYTES + HOLDERS_BYTES) * 4 // 3)

COMMITMENTS = ListOf(STATEMENT, 2, 32, repeats=True)
DRAWING = Record(
    {
        "commitments": COMMITMENTS,
        "nonces": ListOf(Hex(2 * NONCE_BYTES), 2, 32),
        "ids": Base64(),
        "holders": Base64(),
    }
)
# A node's answers before it sums: its state, its commitment with the ids that it holds, and its nonce.
STATE = Record({"shares": Integer(0, 1 << 53)}, {"drawing": DRAWING})
COMMITTED = Record({"statement": STATEMENT, "ids": Base64()})
SHOWN = Record({"nonce": Hex(2 * NONCE_BYTES)})


@dataclass(frozen=True)
class Drawing:
    """How a set was drawn.

    Attributes:
        commitments: each node's commitment, in the study's order.
        nonces: each node's nonce, in the study's order.
        held: {report id: a bit for each node}.
    """

    commitments: Sequence[Statement]
    nonces: Sequence[bytes]
    held: dict[bytes, int]

    @classmethod
    def of(
        cls, commitments: Sequence[Statement], nonces: Sequence[bytes], lists: Sequence[Sequence[bytes]]
    ) -> Drawing:
        """Make a drawing from the ids that each node holds."""
        held: dict[bytes, int] = {}
        for node, ids in enumerate(lists):
            for report_id in ids:
                held[report_id] = held.get(report_id, 0) | 1 << node
        return cls(tuple(commitments), tuple(nonces), dict(sorted(held.items())))

    def chosen(self, study: Study) -> list[bytes]:
        """Return the drawn set, ascending, after every possible check.

        Raises StatementError if a signature, a nonce or a list does not match its node's commitment, or if
        too few reports reached every node.
        """
        assert study.protocol is not None
        nodes = len(study.protocol.nodes)
        check_commitments(study, self.commitments)
        if [sha256(nonce).hexdigest() for nonce in self.nonces] != [each.total for each in self.commitments]:
            raise StatementError(
                "nonces", "differ from the nodes' commitments", code="statement.nonces_differ"
            )
        for node, commitment in enumerate(self.commitments):
            ids = [report_id for report_id, holders in self.held.items() if holders >> node & 1]
            if (len(ids), set_digest(ids)) != (commitment.devices, commitment.set):
                raise StatementError(
                    "ids", f"differ from the ids that node {node} committed to", code="statement.ids_differ"
                )
        everywhere = [report_id for report_id, holders in self.held.items() if holders == (1 << nodes) - 1]
        if len(everywhere) < study.protocol.min_devices:
            raise StatementError(
                "ids",
                f"only {len(everywhere)} devices reached every node, and no sum over fewer than "
                f"{study.protocol.min_devices} (devices − max_faulty) is ever made",
                code="statement.too_few_devices",
            )
        seed = PLACE_PREFIX + sha256(SEED_PREFIX + b"".join(self.nonces)).digest()
        drawn = nsmallest(study.protocol.devices, everywhere, lambda one: sha256(seed + one).digest())
        return sorted(drawn)

    def to_document(self) -> dict[str, Any]:
        """Return the plain JSON value."""
        holders = b"".join(each.to_bytes(HOLDERS_BYTES, "big") for each in self.held.values())
        return {
            "commitments": [each.to_document() for each in self.commitments],
            "nonces": [nonce.hex() for nonce in self.nonces],
            "ids": to_base64(b"".join(self.held)),
            "holders": to_base64(holders),
        }

    def to_json(self) -> str:
        """Return the canonical JSON text."""
        return canonical_json(self.to_document())

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> Drawing:
        """Make a drawing of what DRAWING read; `chosen` checks its contents. Raises StatementError."""
        ids, holders = split_ids(fields["ids"]), fields["holders"]
        if len(holders) != HOLDERS_BYTES * len(ids):
            raise StatementError("holders", "must be 4 bytes for each id", code="statement.holders_size")
        starts = range(0, len(holders), HOLDERS_BYTES)
        each = [int.from_bytes(holders[start : start + HOLDERS_BYTES], "big") for start in starts]
        if any(one == 0 or one >> len(fields["commitments"]) for one in each):
            raise StatementError(
                "holders", "must have one bit or more, of nodes of the study", code="statement.holders_empty"
            )
        commitments = tuple(Statement(**commitment) for commitment in fields["commitments"])
        return cls(commitments, tuple(map(bytes.fromhex, fields["nonces"])), dict(zip(ids, each)))


def check_commitments(study: Study, commitments: Sequence[Statement]) -> None:
    """Raise StatementError unless each of the study's nodes signed its commitment, in the study's order."""
    assert study.protocol is not None
    if len(commitments) != len(study.protocol.nodes):
        raise StatementError(
            "commitments", "must be one for each node of the study", code="statement.wrong_commitment_count"
        )
    for index, (commitment, node) in enumerate(zip(commitments, study.protocol.nodes)):
        commitment.check(node.signing_key)
        if commitment.subject[:4] != ("draw", study.id, study.digest, index):
            raise StatementError(
                f"node {index}", "committed to something else", code="statement.commitment_differs"
            )


def digest_of(commitments: Sequence[Statement]) -> bytes:
    """Return the SHA-256 of all commitments; a node shows its nonce only for one such digest."""
    return sha256(canonical_json([each.to_document() for each in commitments]).encode()).digest()
