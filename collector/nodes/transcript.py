"""The transcript of a closing: what each node signed, so that anyone can check and repeat the total."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collector.nodes.drawing import COMMITMENTS, DRAWING, Drawing
from collector.nodes.statements import STATEMENT, Nested, Statement, set_digest
from ldp_client import mechanisms_of
from ldp_client.documents.canonical import canonical_json, parse_json
from ldp_client.documents.errors import StatementError, SummaryError
from ldp_client.documents.fields import Base64, Constant, Hex, Identifier
from ldp_client.documents.shapes import ListOf, Record
from schemas import Study
from summaries import QuestionSummary, Summary
from summaries.reductions import REDUCTIONS

FORMAT = "ldpkit.transcript/2"
# Beginnings of transcript files. "confirmed" comes before "format", and contains formats too.
BEGINNINGS = (FORMAT, '{"confirmed":')
MAX_BYTES = 1 << 30


_SUM = Record({"statement": Nested(Statement.from_document, STATEMENT), "total": Base64()})


@dataclass(frozen=True)
class NodeSum:
    """One node's sum, little-endian 64-bit words, and its statement about it."""

    statement: Statement
    total: bytes

    @classmethod
    def from_document(cls, document: Any) -> NodeSum:
        """Validate a plain JSON value. Raises StatementError."""
        return cls(**_SUM.read(document, "", StatementError))

    def to_document(self) -> dict[str, Any]:
        """Return the plain JSON value."""
        words = b2a_base64(self.total, newline=False).decode()
        return {"statement": self.statement.to_document(), "total": words}


_SHAPE = Record(
    {
        "format": Constant(FORMAT),
        "study": Identifier(),
        "digest": Hex(64),
        "drawing": Nested(Drawing.from_document, DRAWING),
        "confirmed": COMMITMENTS,
        "sums": ListOf(Nested(NodeSum.from_document, _SUM), 2, 32),
    }
)


@dataclass(frozen=True)
class Transcript:
    """What the nodes signed.

    Attributes:
        drawing: how the nodes drew the set.
        confirmed: each node's statement of the set, in the study's order.
        sums: each node's sum, in the study's order.
    """

    study: str
    digest: str
    drawing: Drawing
    confirmed: Sequence[Statement]
    sums: Sequence[NodeSum]

    def to_json(self) -> str:
        """Return the canonical JSON text."""
        head = {"format": FORMAT, "study": self.study, "digest": self.digest}
        confirmed = [statement.to_document() for statement in self.confirmed]
        sums = [part.to_document() for part in self.sums]
        drawing = self.drawing.to_document()
        return canonical_json({**head, "drawing": drawing, "confirmed": confirmed, "sums": sums})

    @classmethod
    def from_json(cls, text: str | bytes) -> Transcript:
        """Parse a transcript; `total` checks its contents. Raises StatementError."""
        document = parse_json(text, StatementError, MAX_BYTES)
        parsed = _SHAPE.read(document, "", StatementError)
        del parsed["format"]
        return cls(**parsed)

    def total(self, study: Study) -> Summary:
        """Return the total of the nodes' sums, after every possible check.

        Raises StatementError if a signature, a set or a sum contradicts the others, and SummaryError if no
        devices could produce the total. Then a node summed wrongly or a device sent shares that encode no
        answer; the sums do not show which.
        """
        assert study.protocol is not None
        same_study = (self.study, self.digest) == (study.id, study.digest)
        if not same_study or not len(self.confirmed) == len(self.sums) == len(study.protocol.nodes):
            raise StatementError(
                "digest", "the transcript is of another study document", code="statement.other_study"
            )
        size = sum(mechanism.payload_size for mechanism in mechanisms_of(study).values())
        ids = self.drawing.chosen(study)
        devices = len(ids)
        words = np.zeros(size // 8, dtype="<u8")
        for index, (confirmed, part) in enumerate(zip(self.confirmed, self.sums)):
            _check_node(study, index, (devices, set_digest(ids)), confirmed, part, size)
            words += np.frombuffer(part.total, dtype="<u8")
        return _summary(study, devices, words.astype("<i8"))


def _check_node(
    study: Study, index: int, drawn: tuple[int, str], confirmed: Statement, part: NodeSum, size: int
) -> None:
    assert study.protocol is not None
    key = study.protocol.nodes[index].signing_key
    said = part.statement
    for statement, kind in ((confirmed, "set"), (said, "sum")):
        statement.check(key)
        if statement.subject != (kind, study.id, study.digest, index, *drawn):
            raise StatementError(
                f"node {index}",
                "speaks of another study or node, or not of the drawn set",
                code="statement.other_set",
            )
    if len(part.total) != size or sha256(part.total).hexdigest() != said.total:
        raise StatementError(
            f"node {index}", "its sum differs from its signed sum", code="statement.wrong_sum"
        )


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
