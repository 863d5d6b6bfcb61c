"""The transcript of a closing: what each node signed, so that anyone can check and repeat the total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collector.nodes.drawing import DRAWING, STATEMENT, Drawing, Statement, set_digest
from ldp_client import mechanisms_of
from ldp_client.documents.canonical import canonical_json, parse_json, to_base64
from ldp_client.documents.errors import StatementError, SummaryError
from ldp_client.documents.fields import Base64, Constant
from ldp_client.documents.shapes import ListOf, Record
from schemas import Study
from summaries import QuestionSummary, Summary
from summaries.reductions import REDUCTIONS

FORMAT = "ldpkit.transcript/1"
MAX_BYTES = 1 << 30

SUM = Record({"statement": STATEMENT, "total": Base64()})
_SHAPE = Record(
    {"format": Constant(FORMAT), "drawing": DRAWING, "sums": ListOf(SUM, 2, 32, repeats=True)},
)


@dataclass(frozen=True)
class NodeSum:
    """One node's sum, little-endian 64-bit words, and its statement about it."""

    statement: Statement
    total: bytes

    @classmethod
    def from_fields(cls, fields: dict[str, Any]) -> NodeSum:
        """Make a sum of what SUM read."""
        return cls(Statement(**fields["statement"]), fields["total"])

    def to_document(self) -> dict[str, Any]:
        """Return the plain JSON value."""
        return {"statement": self.statement.to_document(), "total": to_base64(self.total)}


@dataclass(frozen=True)
class Transcript:
    """What the nodes signed.

    Attributes:
        drawing: how the nodes drew the set.
        sums: each node's sum, in the study's order.
    """

    drawing: Drawing
    sums: Sequence[NodeSum]

    def to_json(self) -> str:
        """Return the canonical JSON text."""
        sums = [part.to_document() for part in self.sums]
        return canonical_json({"format": FORMAT, "drawing": self.drawing.to_document(), "sums": sums})

    @classmethod
    def from_json(cls, text: str | bytes) -> Transcript:
        """Parse a transcript; `total` checks its contents. Raises StatementError."""
        fields = _SHAPE.read(parse_json(text, StatementError, MAX_BYTES), "", StatementError)
        return cls(Drawing.from_fields(fields["drawing"]), tuple(map(NodeSum.from_fields, fields["sums"])))

    def total(self, study: Study) -> Summary:
        """Return the total of the nodes' sums, after every possible check.

        Raises StatementError if a signature, a set or a sum contradicts the others, and SummaryError if no
        devices could produce the total. Then a node summed wrongly or a device sent shares that encode no
        answer; the sums do not show which.
        """
        assert study.protocol is not None
        digests = {statement.digest for statement in self.drawing.commitments}
        if digests != {study.digest} or len(self.sums) != len(study.protocol.nodes):
            raise StatementError(
                "digest", "the transcript is of another study document", code="statement.other_study"
            )
        size = sum(mechanism.payload_size for mechanism in mechanisms_of(study).values())
        ids = self.drawing.chosen(study)
        words = np.zeros(size // 8, dtype="<u8")
        for index, (part, node) in enumerate(zip(self.sums, study.protocol.nodes)):
            statement, field = part.statement, f"node {index}"
            statement.check(node.signing_key)
            if statement.subject != ("sum", study.id, study.digest, index, len(ids), set_digest(ids)):
                problem = "speaks of another study or node, or not of the drawn set"
                raise StatementError(field, problem, code="statement.other_set")
            if len(part.total) != size or sha256(part.total).hexdigest() != statement.total:
                problem = "its sum differs from its signed sum"
                raise StatementError(field, problem, code="statement.wrong_sum")
            words += np.frombuffer(part.total, dtype="<u8")
        return _summary(study, len(ids), words.astype("<i8"))


def _summary(study: Study, devices: int, words: NDArray[np.int64]) -> Summary:
    questions, start = {}, 0
    for name, mechanism in mechanisms_of(study).items():
        end = start + mechanism.payload_size // 8
        values = words[start:end].astype(np.int64)
        if not REDUCTIONS[mechanism.name].possible(mechanism, devices, values):
            problem = "is no possible sum: a node or a device went wrong"
            raise SummaryError(f"questions.{name}", problem, code="summary.sum_impossible")
        questions[name] = QuestionSummary(devices, values)
        start = end
    return Summary(study.id, study.version, study.digest, questions)
