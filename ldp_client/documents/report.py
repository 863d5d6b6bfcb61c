"""A report: what one device sends, once, in answer to one study."""

from typing import Any, Self

from ldp_client.documents.canonical import canonical_json, parse_json, to_base64
from ldp_client.documents.errors import ReportError
from ldp_client.documents.fields import Base64, Constant, Hex, Identifier, Integer
from ldp_client.documents.public import PUBLIC_VALUES
from ldp_client.documents.shapes import MapOf, Record

FORMAT = "ldpkit.report/1"
MAX_BYTES = 8 << 20
# The most questions of a study, and so the most payloads of a report.
MOST_QUESTIONS = 100
ID_BYTES = 16
SECRET_BYTES = 16
# Each kind of hash has its own prefix, so that no hash serves two purposes.
ID_PREFIX = b"ldpkit.report-id/1\0"


def report_id_of(secret: bytes) -> str:
    """Return the id of the report with this secret: 16 bytes of a SHA-256, in hexadecimal digits.

    The secret gives the right to delete the report. It cannot be computed from the id.
    """
    from hashlib import sha256

    return sha256(ID_PREFIX + secret).digest()[:ID_BYTES].hex()


REPORT = Record(
    {
        "format": Constant(FORMAT),
        "id": Hex(2 * ID_BYTES),
        "study": Identifier(),
        "version": Integer(1, 10**6),
        "digest": Hex(64),
        "payloads": MapOf(Base64(), MOST_QUESTIONS),
    },
    {"public": PUBLIC_VALUES},
)


class Report:
    """One device's noisy answers. `from_json` and `from_document` validate; the constructor does not.

    Args:
        id: 32 hexadecimal digits, `report_id_of` the device's secret.
        study: id of the study whose document was answered.
        version: its version.
        digest: its digest, 64 hexadecimal digits.
        payloads: {question id: the mechanism's bytes}.
        padding: the number of spaces after its text when it leaves the device; readers drop them.
        secret: proves the right to delete the report. The device stores it next to the report; it is in no
            document (b"" for a report that was read).
        public: {public field id: value}, without noise; empty in a study without public fields.

    Attributes:
        id: as given, like all other attributes.
    """

    def __init__(
        self,
        id: str,
        study: str,
        version: int,
        digest: str,
        payloads: dict[str, bytes],
        padding: int = 0,
        secret: bytes = b"",
        public: dict[str, str] | None = None,
    ) -> None:
        self.id = id
        self.study = study
        self.version = version
        self.digest = digest
        # A copy: a caller that makes many reports may reuse one mapping for all of them.
        self.payloads = dict(payloads)
        self.padding = padding
        self.secret = secret
        self.public: dict[str, str] = dict(public or {})

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """Validate a plain JSON value and build the report that it states.

        Args:
            document: a report's JSON as a dictionary.

        Returns:
            The report, without secret and padding.

        Raises:
            ReportError: the value is not a report; the error names the field that is wrong.
        """
        parsed = REPORT.read(document, "", ReportError)
        del parsed["format"]
        return cls(**parsed)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Parse and validate a report.

        Args:
            text: JSON, at most 8 MiB, as text or UTF-8 bytes; it need not be canonical.

        Returns:
            The report, without secret and padding.

        Raises:
            ReportError: the text is not a report; the error names the field that is wrong.
        """
        return cls.from_document(parse_json(text, ReportError, MAX_BYTES))

    def to_document(self) -> dict[str, Any]:
        """Return the report as a plain JSON value: payloads in base64, public values as they are."""
        document: dict[str, Any] = {
            "format": FORMAT,
            "id": self.id,
            "study": self.study,
            "version": self.version,
            "digest": self.digest,
            "payloads": {key: to_base64(self.payloads[key]) for key in self.payloads},
        }
        if self.public:
            document["public"] = dict(self.public)
        return document

    def to_json(self) -> str:
        """Return the canonical JSON text, followed by the padding."""
        return canonical_json(self.to_document()) + " " * self.padding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Report) and self.to_document() == other.to_document()

    def __repr__(self) -> str:
        return f"Report({self.id}, study {self.study!r}, version {self.version})"
