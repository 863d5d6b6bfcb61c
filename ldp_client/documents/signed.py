"""A signed study: the study's canonical text and signatures over exactly these bytes.

The study document itself does not change, so its digest and its reports do not either.
"""

from typing import Any, NamedTuple, Self

from ldp_client.documents.canonical import canonical_json, parse_json, to_base64
from ldp_client.documents.errors import StudyError
from ldp_client.documents.fields import Base64, Constant, Hex, Text
from ldp_client.documents.shapes import ListOf, Record
from ldp_client.documents.study import MAX_BYTES as MAX_STUDY_BYTES
from ldp_client.documents.study import Study

FORMAT = "ldpkit.signed-study/1"
# Quotes inside the study's text are escaped: at most twice its size, and the signatures.
MAX_BYTES = 2 * MAX_STUDY_BYTES + (1 << 14)
MOST_SIGNATURES = 8
RSA = "rsa-pkcs1v15-sha256"


SIGNED_STUDY = Record(
    {
        "format": Constant(FORMAT),
        "study": Text(MAX_STUDY_BYTES),
        "signatures": ListOf(
            Record({"algorithm": Constant(RSA), "key": Hex(64), "signature": Base64()}),
            1,
            MOST_SIGNATURES,
            unique_by="key",
        ),
    }
)


class Signature(NamedTuple):
    """One RSA signature over a study's canonical bytes.

    key: the key's id, the SHA-256 of its SubjectPublicKeyInfo (DER), in hexadecimal digits. value: the
    signature's bytes.
    """

    key: str
    value: bytes

    def to_document(self) -> dict[str, Any]:
        """Return the plain JSON value."""
        return {"algorithm": RSA, "key": self.key, "signature": to_base64(self.value)}


class SignedStudy:
    """A study and its signatures. `from_json` validates the form; it does not verify signatures.

    study: the Study. signatures: one for each key.
    """

    # What a subclass reads the study by.
    _study_class = Study

    def __init__(self, study: Study, signatures: list[Signature]) -> None:
        self.study = study
        self.signatures = signatures

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse and validate a signed study. Raises StudyError."""
        parsed = SIGNED_STUDY.read(parse_json(text, StudyError, MAX_BYTES), "", StudyError)
        study = cls._study_class.from_json(parsed["study"])
        if study.to_json() != parsed["study"]:
            raise StudyError("study", "must be the study's canonical JSON", code="study.not_canonical")
        signatures = [Signature(item["key"], item["signature"]) for item in parsed["signatures"]]
        return cls(study, signatures)

    def to_json(self) -> str:
        """Return the canonical JSON text."""
        return signed_json(self.study.to_json(), self.signatures)

    def __repr__(self) -> str:
        return f"SignedStudy({self.study!r}, {len(self.signatures)} signatures)"


def signed_json(study: str, signatures: list[Signature]) -> str:
    """Return the canonical JSON text of a signed study. study: its canonical JSON, which is not parsed."""
    documents = [signature.to_document() for signature in signatures]
    return canonical_json({"format": FORMAT, "study": study, "signatures": documents})
