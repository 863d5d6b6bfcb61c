"""The OpenAPI document, and the types with which views describe operations: schemas, parameters, problems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from collector import problems
from collector.api.auth import SECRET, WITHDRAWAL
from collector.api.parameters import LARGEST_COUNT
from collector.exports.formats import FORMATS
from collector.nodes.statements import STATEMENT
from collector.problems import Kind
from collector.reports.intake import TICKET
from collector.views.batches import MOST_REPORTS
from ldp_client.documents.fields import Day, Hex, Identifier, Integer
from ldp_client.documents.report import ID_BYTES, REPORT
from ldp_client.documents.signed import SIGNED_STUDY
from schemas.study import STUDY
from summaries.summary import CELLS
from summaries.summary import FORMAT as SUMMARY_FORMAT

JSON = "application/json"
Document = dict[str, Any]

COUNT = {"type": "integer", "minimum": 0}
TEXT = {"type": "string"}
TEXT_OR_NULL = {"type": ["string", "null"]}
LISTED = {
    "id": TEXT,
    "version": COUNT,
    "title": TEXT,
    "state": {"enum": ["open", "not open yet", "ended", "closed", "deleted"]},
    "opens": TEXT_OR_NULL,
    "closes": TEXT_OR_NULL,
    "days_left": {"type": ["integer", "null"]},
    "reports": COUNT,
    "reports_now": COUNT,
    "summed": {"type": "boolean"},
}


def object_of(properties: Mapping[str, Any], optional: Sequence[str] = ()) -> Document:
    """Return the schema of an object."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required}


def reference(name: str) -> Document:
    """Return a reference to a schema in SCHEMAS."""
    return {"$ref": f"#/components/schemas/{name}"}


def json_of(name: str) -> Document:
    """Return JSON content with a schema in SCHEMAS."""
    return {JSON: reference(name)}


QUESTION_SUMMARIES: Document = {
    "type": "object",
    "additionalProperties": object_of(
        {"n": COUNT, "values": {"type": "array", "items": {"type": "integer"}}}
    ),
}
KEPT: Document = object_of(
    {
        "study": TEXT,
        "version": COUNT,
        "days": COUNT,
        "until": TEXT_OR_NULL,
        "reports": COUNT,
        "overdue": COUNT,
    }
)
SCHEMAS: Document = {
    "Study": STUDY.json_schema(),
    "SignedStudy": SIGNED_STUDY.json_schema(),
    "Report": REPORT.json_schema(),
    "Batch": {
        **object_of({"reports": {"type": "array", "items": reference("Report"), "maxItems": MOST_REPORTS}}),
        "additionalProperties": False,
    },
    "Published": object_of({"id": TEXT, "version": COUNT, "digest": TEXT}),
    "Closed": object_of({"id": TEXT, "version": COUNT, "closed": {"const": True}}),
    "Opened": object_of({"id": TEXT, "version": COUNT, "closed": {"const": False}}),
    "Studies": object_of({"studies": {"type": "array", "items": object_of(LISTED)}}),
    "Status": object_of(
        {
            **LISTED,
            "by_day": {"type": "array", "items": object_of({"day": TEXT, "reports": COUNT})},
            "versions": {"type": "array", "items": object_of({"version": COUNT, "reports": COUNT})},
            "tickets_left": {"type": ["integer", "null"]},
            "issuer": TEXT_OR_NULL,
            "refused": {"type": "object", "additionalProperties": COUNT},
            "retention": {"type": "array", "items": KEPT},
            "attention": {"type": "array", "items": TEXT},
        }
    ),
    "Retention": object_of({"retention": {"type": "array", "items": KEPT}}),
    "Deleted": object_of({"id": TEXT, "deleted": COUNT, "complete": {"type": "boolean"}}),
    "Tickets": object_of(
        {"tickets": {"type": "array", "items": TEXT}, "warnings": {"type": "array", "items": TEXT}}
    ),
    "Named": object_of({"id": TEXT}),
    "Upkeep": object_of({"wrong": {"type": "array", "items": object_of({"study": TEXT, "version": COUNT})}}),
    "Keys": object_of(
        {
            "keys": {
                "type": "array",
                "items": object_of(
                    {
                        "name": TEXT,
                        "role": TEXT,
                        "studies": {"type": ["array", "null"]},
                        "expires": TEXT_OR_NULL,
                        "used": TEXT_OR_NULL,
                    }
                ),
            }
        }
    ),
    "NewKey": object_of({"name": TEXT, "key": TEXT, "warnings": {"type": "array", "items": TEXT}}),
    "RemovedKey": object_of({"name": TEXT, "removed": {"const": True}}),
    "AuditLog": object_of(
        {
            "entries": {
                "type": "array",
                "items": object_of(
                    {"at": TEXT, "key": TEXT, "action": TEXT, "study": TEXT_OR_NULL, "detail": TEXT}
                ),
            }
        }
    ),
    "Receipt": object_of({"id": TEXT, "result": {"enum": ["stored", "duplicate"]}}),
    "Withdrawal": object_of({"id": TEXT, "result": {"const": "withdrawn"}}),
    "BatchResult": object_of(
        {"stored": COUNT, "duplicates": COUNT, "failed": {"type": "array", "items": reference("Failure")}}
    ),
    "Failure": object_of({"id": {"type": ["string", "null"]}, "type": TEXT, "detail": TEXT, "field": TEXT}),
    "Problem": object_of(
        {
            "type": TEXT,
            "title": TEXT,
            "status": COUNT,
            "detail": TEXT,
            "advice": TEXT,
            "digest": TEXT,
            "field": TEXT,
            "failed": {"type": "array", "items": reference("Failure")},
            "final": {"const": True},
        },
        optional=("advice", "digest", "field", "failed", "final"),
    ),
    "Summary": object_of(
        {
            "format": {"const": SUMMARY_FORMAT},
            "study": TEXT,
            "version": COUNT,
            "digest": TEXT,
            "questions": QUESTION_SUMMARIES,
            CELLS: {
                "type": "array",
                "items": object_of(
                    {"public": {"type": "array", "items": TEXT}, "questions": QUESTION_SUMMARIES}
                ),
            },
        },
        optional=(CELLS,),
    ),
    "Statement": STATEMENT.json_schema(),
    "NodeSum": object_of({"statement": reference("Statement"), "total": TEXT}),
    "Health": object_of({"status": {"const": "ok"}}),
}

STUDY_ID = {"name": "study_id", "in": "path", "required": True, "schema": Identifier().json_schema()}
REPORT_ID = {
    "name": "report_id",
    "in": "path",
    "required": True,
    "schema": Hex(2 * ID_BYTES).json_schema(),
    "description": "A hash of a secret that only the device has.",
}
WITHDRAWAL_HEADER = {
    "name": WITHDRAWAL,
    "in": "header",
    "schema": SECRET.json_schema(),
    "description": "What the report's id is made of; without it an operator's key is needed.",
}
TICKET_HEADER = {
    "name": TICKET,
    "in": "header",
    "schema": TEXT,
    "description": "An unused ticket, if the study takes invited reports only.",
}
VERSION = {"name": "version", "in": "query", "schema": Integer(1, 10**6).json_schema()}
FORMAT = {"name": "format", "in": "query", "schema": {"enum": list(FORMATS)}}
AFTER = {"name": "after", "in": "query", "schema": Hex(2 * ID_BYTES).json_schema()}
DELETIONS = {
    "name": "deletions",
    "in": "query",
    "schema": {"type": "integer", "minimum": 0, "maximum": LARGEST_COUNT},
    "description": "With `after`: the LDPKit-Deletions of the answer that broke off.",
}
THROUGH = {"name": "through", "in": "query", "schema": Day().json_schema()}
ENCODING = {
    "name": "Content-Encoding",
    "in": "header",
    "schema": {"enum": ["identity", "gzip"]},
    "description": "Applied to the whole body.",
}

EXPORTED = {form.media_type: TEXT for form in FORMATS.values()}
ALWAYS = (problems.UNAVAILABLE,)
KEY = (problems.UNAUTHORIZED, problems.FORBIDDEN, problems.TOO_MANY_KEYS)
TOKENS = (problems.TICKET_NEEDED, problems.TICKET_INVALID, problems.TICKET_SPENT)
# OpenAPI excludes Authorization from parameters.
TOKEN_NOTE = "If the study has tokens, Authorization carries one, as in RFC 9577."
# Problems of a deletion, which needs the report's secret or a key.
RIGHT = (*KEY, problems.WITHDRAWAL_UNPROVEN, problems.WITHDRAWAL_REFUSED, problems.TOO_MANY_DELETIONS)
BODY = (problems.MALFORMED_JSON, problems.BODY_TOO_LARGE, problems.MEDIA_TYPE_UNSUPPORTED)
REQUEST = (*BODY, problems.MALFORMED_ENCODING, problems.STATEMENT_INVALID)
WRITE = (problems.OVERLOADED, problems.DISK_FULL)
UPLOAD = (
    *BODY,
    problems.MALFORMED_ENCODING,
    problems.STUDY_UNKNOWN,
    problems.TOO_MANY_REPORTS,
    *WRITE,
)


@dataclass(frozen=True)
class Operation:
    """One method of one path. answers: {status: (description, {media type: schema})}."""

    method: str
    path: str
    name: str
    summary: str
    answers: Mapping[int, tuple[str, Mapping[str, Any]]]
    refusals: Sequence[Kind] = ()
    parameters: Sequence[Document] = ()
    body: Mapping[str, Any] = field(default_factory=dict)
    body_note: str = ""

    @property
    def needs_key(self) -> bool:
        """Whether only an operator may do this."""
        return problems.UNAUTHORIZED in self.refusals

    def describe(self) -> Document:
        """Return the OpenAPI operation object."""
        responses = {str(status): _answer(*answer) for status, answer in self.answers.items()}
        responses.update(_refusals([*self.refusals, *ALWAYS]))
        document: Document = {"operationId": self.name, "summary": self.summary, "responses": responses}
        if self.parameters:
            document["parameters"] = list(self.parameters)
        if self.body:
            document["requestBody"] = {"required": True, "content": _content(self.body)}
            if self.body_note:
                document["requestBody"]["description"] = self.body_note
        if self.needs_key:
            by_secret: list[Document] = [{}] if problems.WITHDRAWAL_UNPROVEN in self.refusals else []
            document["security"] = [*by_secret, {"key": []}]
        return document


def openapi_document(operations: Sequence[Operation]) -> Document:
    """Return the OpenAPI 3.1 document of a collector or a node."""
    paths: dict[str, Document] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = operation.describe()
    return {
        "openapi": "3.1.0",
        "info": {"title": "ldpkit collector", "version": version("ldpkit")},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _answer(description: str, content: Mapping[str, Any]) -> Document:
    return (
        {"description": description, "content": _content(content)}
        if content
        else {"description": description}
    )


def _content(schemas: Mapping[str, Any]) -> Document:
    return {media_type: {"schema": schema} for media_type, schema in schemas.items()}


def _refusals(kinds: Sequence[Kind]) -> Document:
    """Return the problem responses by status; each lists its possible types."""
    responses: Document = {}
    for status in sorted({kind.status for kind in kinds}):
        here = [kind for kind in kinds if kind.status == status]
        types = {"properties": {"type": {"enum": [kind.type for kind in here]}}}
        content = {problems.MEDIA_TYPE: {"allOf": [reference("Problem"), types]}}
        responses[str(status)] = _answer("; ".join(kind.title for kind in here), content)
        if any(kind.retry_after for kind in here):
            header = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
            responses[str(status)]["headers"] = {"Retry-After": header}
    return responses
