"""The OpenAPI document of the API, made from the shapes, the problems and the list of operations below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from collector import problems
from collector.formats import FORMATS
from collector.metrics import MEDIA_TYPE as METRICS_MEDIA_TYPE
from collector.problems import Kind
from schemas.fields import Day, Hex, Identifier, Integer
from schemas.report import ID_BYTES, REPORT
from schemas.study import STUDY

JSON = "application/json"
Document = dict[str, Any]

COUNT = {"type": "integer", "minimum": 0}
TEXT = {"type": "string"}


def _object(properties: Mapping[str, Any], optional: Sequence[str] = ()) -> Document:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": dict(properties), "required": required}


def _reference(name: str) -> Document:
    return {"$ref": f"#/components/schemas/{name}"}


SCHEMAS: Document = {
    "Study": STUDY.json_schema(),
    "Report": REPORT.json_schema(),
    "Batch": {
        **_object({"reports": {"type": "array", "items": _reference("Report")}}),
        "additionalProperties": False,
    },
    "Published": _object({"id": TEXT, "version": COUNT, "digest": TEXT}),
    "Closed": _object({"id": TEXT, "version": COUNT, "closed": {"const": True}}),
    "Receipt": _object({"id": TEXT, "result": {"enum": ["stored", "duplicate"]}}),
    "BatchResult": _object(
        {"stored": COUNT, "duplicates": COUNT, "failed": {"type": "array", "items": _reference("Failure")}}
    ),
    "Failure": _object({"id": {"type": ["string", "null"]}, "type": TEXT, "detail": TEXT, "field": TEXT}),
    "Problem": _object(
        {"type": TEXT, "title": TEXT, "status": COUNT, "detail": TEXT, "advice": TEXT, "field": TEXT},
        optional=("advice", "field"),
    ),
    "Health": _object({"status": {"const": "ok"}}),
}

STUDY_ID = {"name": "study_id", "in": "path", "required": True, "schema": Identifier().json_schema()}
REPORT_ID = {
    "name": "report_id",
    "in": "path",
    "required": True,
    "schema": Hex(2 * ID_BYTES).json_schema(),
    "description": "Drawn by the device; whoever knows it may withdraw the report.",
}
VERSION = {"name": "version", "in": "query", "schema": Integer(1, 10**6).json_schema()}
FORMAT = {"name": "format", "in": "query", "schema": {"enum": list(FORMATS)}}
AFTER = {"name": "after", "in": "query", "schema": Hex(2 * ID_BYTES).json_schema()}
THROUGH = {"name": "through", "in": "query", "schema": Day().json_schema()}
ENCODING = {
    "name": "Content-Encoding",
    "in": "header",
    "schema": {"enum": ["identity", "gzip", "zstd"]},
    "description": "Applied to the whole body.",
}

EXPORTS = {form.media_type: TEXT for form in FORMATS.values()}
ALWAYS = (problems.UNAVAILABLE,)
KEY = (problems.UNAUTHORIZED, problems.FORBIDDEN)
BODY = (problems.MALFORMED_JSON, problems.BODY_TOO_LARGE, problems.MEDIA_TYPE_UNSUPPORTED)
UPLOAD = (
    *BODY,
    problems.MALFORMED_CBOR,
    problems.MALFORMED_ENCODING,
    problems.STUDY_UNKNOWN,
    problems.TOO_MANY_REPORTS,
    problems.OVERLOADED,
    problems.DISK_FULL,
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

    @property
    def needs_key(self) -> bool:
        """Whether only an operator may do this."""
        return problems.UNAUTHORIZED in self.refusals

    def describe(self) -> Document:
        """The OpenAPI operation object."""
        responses = {str(status): _answer(*answer) for status, answer in self.answers.items()}
        responses.update(_refusals([*self.refusals, *ALWAYS]))
        document: Document = {"operationId": self.name, "summary": self.summary, "responses": responses}
        if self.parameters:
            document["parameters"] = list(self.parameters)
        if self.body:
            document["requestBody"] = {"required": True, "content": _content(self.body)}
        if self.needs_key:
            document["security"] = [{"key": []}]
        return document


def _answer(description: str, content: Mapping[str, Any]) -> Document:
    return (
        {"description": description, "content": _content(content)}
        if content
        else {"description": description}
    )


def _content(schemas: Mapping[str, Any]) -> Document:
    return {media_type: {"schema": schema} for media_type, schema in schemas.items()}


def _refusals(kinds: Sequence[Kind]) -> Document:
    """Problem responses by status; each lists the types it may have."""
    responses: Document = {}
    for status in sorted({kind.status for kind in kinds}):
        here = [kind for kind in kinds if kind.status == status]
        types = {"properties": {"type": {"enum": [kind.type for kind in here]}}}
        content = {problems.MEDIA_TYPE: {"allOf": [_reference("Problem"), types]}}
        responses[str(status)] = _answer("; ".join(kind.title for kind in here), content)
        if any(kind.retry_after for kind in here):
            header = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
            responses[str(status)]["headers"] = {"Retry-After": header}
    return responses


def _json(name: str) -> Document:
    return {JSON: _reference(name)}


OPERATIONS = (
    Operation(
        "post",
        "/v1/studies",
        "publishStudy",
        "Publish a study, or a new version of one; a published version never changes.",
        {200: ("Published before", _json("Published")), 201: ("Published", _json("Published"))},
        (
            *KEY,
            *BODY,
            problems.MALFORMED_ENCODING,
            problems.STUDY_INVALID,
            problems.STUDY_CONFLICT,
            problems.STUDY_OUTDATED,
            problems.STUDY_FINISHED,
            problems.DISK_FULL,
        ),
        (ENCODING,),
        _json("Study"),
    ),
    Operation(
        "get",
        "/v1/studies/{study_id}",
        "fetchStudy",
        "A version's canonical bytes, the current one's unless `version` says otherwise.",
        {200: ("The document; its digest is the ETag", _json("Study")), 304: ("Unchanged", {})},
        (problems.STUDY_UNKNOWN, problems.PARAMETER_INVALID),
        (STUDY_ID, VERSION),
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/close",
        "closeStudy",
        "Take no more reports, for good.",
        {200: ("Closed", _json("Closed"))},
        (*KEY, problems.STUDY_UNKNOWN, problems.DISK_FULL),
        (STUDY_ID,),
    ),
    Operation(
        "put",
        "/v1/studies/{study_id}/reports/{report_id}",
        "uploadReport",
        "Store one report, durably and once; sending it again does no harm.",
        {200: ("Stored before", _json("Receipt")), 201: ("Stored", _json("Receipt"))},
        (
            *UPLOAD,
            problems.REPORT_INVALID,
            problems.REPORT_CONFLICT,
            problems.STUDY_CLOSED,
            problems.REPORT_WITHDRAWN,
            problems.STUDY_NOT_OPEN,
        ),
        (STUDY_ID, REPORT_ID, ENCODING),
        _json("Report"),
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/reports",
        "uploadReports",
        "Store many reports; those that fail are listed and the others are durable.",
        {200: ("What became of each", _json("BatchResult"))},
        (*UPLOAD, problems.BATCH_INVALID),
        (STUDY_ID, ENCODING),
        _json("Batch"),
    ),
    Operation(
        "delete",
        "/v1/studies/{study_id}/reports/{report_id}",
        "withdrawReport",
        "Delete a report for good; only its id is kept, so that no late copy brings it back.",
        {204: ("Withdrawn", {})},
        (problems.STUDY_UNKNOWN, problems.REPORT_UNKNOWN, problems.PARAMETER_INVALID, problems.DISK_FULL),
        (STUDY_ID, REPORT_ID),
    ),
    Operation(
        "get",
        "/v1/studies/{study_id}/export",
        "exportReports",
        "Every report in the order of the ids; `after` resumes, `through` a past day fixes the contents.",
        {200: ("The reports; NDJSON ends with a line that counts them", EXPORTS)},
        (*KEY, problems.STUDY_UNKNOWN, problems.PARAMETER_INVALID),
        (STUDY_ID, FORMAT, AFTER, THROUGH),
    ),
    Operation(
        "get", "/healthz", "isAlive", "Whether the process answers.", {200: ("Alive", _json("Health"))}
    ),
    Operation(
        "get", "/readyz", "isReady", "Whether the database answers.", {200: ("Ready", _json("Health"))}
    ),
    Operation(
        "get",
        "/metrics",
        "readMetrics",
        "Counts of reports and commits for Prometheus.",
        {200: ("Prometheus' text format", {METRICS_MEDIA_TYPE: TEXT})},
        KEY,
    ),
    Operation(
        "get",
        "/openapi.json",
        "readApi",
        "This document.",
        {200: ("OpenAPI", {JSON: {"type": "object"}})},
    ),
)


def openapi_document() -> Document:
    """The OpenAPI 3.1 document."""
    paths: dict[str, Document] = {}
    for operation in OPERATIONS:
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
