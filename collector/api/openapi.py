"""Routes that describe themselves, and the OpenAPI document that they make."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from importlib.metadata import version
from typing import Any

from flask import Blueprint

from collector import problems
from collector.api.auth import requires
from collector.api.bodies import json_body
from collector.api.parameters import IN_PATH, STUDY_ID, Parameter
from collector.keys import Role
from collector.problems import Kind
from collector.reports.uploads import MOST_REPORTS
from ldp_client.documents.errors import StatementError
from ldp_client.documents.report import REPORT
from ldp_client.documents.shapes import Record
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


def list_of(items: Document) -> Document:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def reference(name: str) -> Document:
    """Return a reference to a schema in SCHEMAS."""
    return {"$ref": f"#/components/schemas/{name}"}


def json_of(name: str) -> Document:
    """Return JSON content with a schema in SCHEMAS."""
    return {JSON: reference(name)}


TEXTS = list_of(TEXT)
KEPT = object_of(
    {
        "study": TEXT,
        "version": COUNT,
        "days": COUNT,
        "until": TEXT_OR_NULL,
        "reports": COUNT,
        "overdue": COUNT,
    }
)
STATUS = {
    **LISTED,
    "by_day": list_of(object_of({"day": TEXT, "reports": COUNT})),
    "versions": list_of(object_of({"version": COUNT, "reports": COUNT})),
    "tickets_left": {"type": ["integer", "null"]},
    "issuer": TEXT_OR_NULL,
    "refused": {"type": "object", "additionalProperties": COUNT},
    "retention": list_of(KEPT),
    "attention": TEXTS,
}
LISTED_KEY = {
    "name": TEXT,
    "role": TEXT,
    "studies": {"type": ["array", "null"]},
    "expires": TEXT_OR_NULL,
    "used": TEXT_OR_NULL,
}
ENTRY = {"at": TEXT, "key": TEXT, "action": TEXT, "study": TEXT_OR_NULL, "detail": TEXT}
PROBLEM = {
    "type": TEXT,
    "title": TEXT,
    "status": COUNT,
    "detail": TEXT,
    "advice": TEXT,
    "digest": TEXT,
    "field": TEXT,
    "failed": list_of(reference("Failure")),
    "final": {"const": True},
}
OF_QUESTIONS = {
    "type": "object",
    "additionalProperties": object_of({"n": COUNT, "values": list_of({"type": "integer"})}),
}
SUMMARY = {
    "format": {"const": SUMMARY_FORMAT},
    "study": TEXT,
    "version": COUNT,
    "digest": TEXT,
    "questions": OF_QUESTIONS,
    CELLS: list_of(object_of({"public": TEXTS, "questions": OF_QUESTIONS})),
}
BATCH = {"reports": {**list_of(reference("Report")), "maxItems": MOST_REPORTS}}
SCHEMAS: Document = {
    "Study": STUDY.json_schema(),
    "SignedStudy": SIGNED_STUDY.json_schema(),
    "Report": REPORT.json_schema(),
    "Batch": {**object_of(BATCH), "additionalProperties": False},
    "Published": object_of({"id": TEXT, "version": COUNT, "digest": TEXT}),
    "Closed": object_of({"id": TEXT, "version": COUNT, "closed": {"const": True}}),
    "Opened": object_of({"id": TEXT, "version": COUNT, "closed": {"const": False}}),
    "Studies": object_of({"studies": list_of(object_of(LISTED))}),
    "Status": object_of(STATUS),
    "Retention": object_of({"retention": list_of(KEPT)}),
    "Deleted": object_of({"id": TEXT, "deleted": COUNT, "complete": {"type": "boolean"}}),
    "Tickets": object_of({"tickets": TEXTS, "warnings": TEXTS}),
    "Named": object_of({"id": TEXT}),
    "Upkeep": object_of({"wrong": list_of(object_of({"study": TEXT, "version": COUNT}))}),
    "Keys": object_of({"keys": list_of(object_of(LISTED_KEY))}),
    "NewKey": object_of({"name": TEXT, "key": TEXT, "warnings": TEXTS}),
    "RemovedKey": object_of({"name": TEXT, "removed": {"const": True}}),
    "AuditLog": object_of({"entries": list_of(object_of(ENTRY))}),
    "Receipt": object_of({"id": TEXT, "result": {"enum": ["stored", "duplicate"]}}),
    "Withdrawal": object_of({"id": TEXT, "result": {"const": "withdrawn"}}),
    "BatchResult": object_of({"stored": COUNT, "duplicates": COUNT, "failed": list_of(reference("Failure"))}),
    "Failure": object_of({"id": TEXT_OR_NULL, "type": TEXT, "detail": TEXT, "field": TEXT}),
    "Problem": object_of(PROBLEM, optional=("advice", "digest", "field", "failed", "final")),
    "Summary": object_of(SUMMARY, optional=(CELLS,)),
    "Health": object_of({"status": {"const": "ok"}}),
}

ALWAYS = (problems.UNAVAILABLE,)
KEY = (problems.UNAUTHORIZED, problems.FORBIDDEN, problems.TOO_MANY_KEYS)
TICKET_PROBLEMS = (problems.TICKET_NEEDED, problems.TICKET_INVALID, problems.TICKET_SPENT)
# Problems of a deletion, which needs the report's secret or a key.
RIGHT = (*KEY, problems.WITHDRAWAL_UNPROVEN, problems.WITHDRAWAL_REFUSED, problems.TOO_MANY_DELETIONS)
BODY = (problems.MALFORMED_JSON, problems.BODY_TOO_LARGE, problems.MEDIA_TYPE_UNSUPPORTED)
REQUEST = (*BODY, problems.MALFORMED_ENCODING, problems.STATEMENT_INVALID)
WRITE = (problems.OVERLOADED, problems.DISK_FULL)
UPLOAD = (*BODY, problems.MALFORMED_ENCODING, problems.STUDY_UNKNOWN, problems.TOO_MANY_REPORTS, *WRITE)


Answers = Mapping[int, tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class Operation:
    """One method of one path.

    answers: {status: (description, {media type: schema})}. view: the guarded view.
    """

    method: str
    path: str
    name: str
    summary: str
    answers: Answers
    refusals: Sequence[Kind] = ()
    parameters: Sequence[Parameter] = ()
    body: Mapping[str, Any] = field(default_factory=dict)
    view: Callable[..., Any] = field(default=lambda: None)

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
            document["parameters"] = [parameter.describe() for parameter in self.parameters]
        if self.body:
            document["requestBody"] = {"required": True, "content": _content(self.body)}
        if self.needs_key:
            by_secret: list[Document] = [{}] if problems.WITHDRAWAL_UNPROVEN in self.refusals else []
            document["security"] = [*by_secret, {"key": []}]
        return document


class Api(Blueprint):
    """Routes with their descriptions. A view's function names its operation, its docstring describes it."""

    def __init__(self, name: str, import_name: str) -> None:
        super().__init__(name, import_name)
        self.operations: list[Operation] = []

    def operation(
        self,
        method: str,
        path: str,
        answers: str | Answers,
        *,
        role: Role | None = None,
        of_some: bool = False,
        query: Sequence[Parameter] = (),
        headers: Sequence[Parameter] = (),
        takes: Record | None = None,
        body: Mapping[str, Any] | None = None,
        refusals: Sequence[Kind] = (),
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a view, which gets the values of its path, its query and its body by name.

        Args:
            method: in lower case.
            path: as OpenAPI has it, with {names}.
            answers: a name in SCHEMAS for JSON with the status 200; or all answers by status.
            role: the role that a key must have.
            of_some: as `requires` takes it.
            query: the parameters of its query.
            headers: headers that it reads.
            takes: what its body must be; the view gets it as `body`.
            body: the body's media types, if the view reads it.
            refusals: its problems, besides those of a key, of parameters and of the body.
        """
        in_path = [IN_PATH[name] for name in re.findall(r"\{(\w+)\}", path)]
        problems_of_it = [
            *(KEY if role is not None else ()),
            *(REQUEST if takes is not None else ()),
            *((problems.STUDY_UNKNOWN,) if STUDY_ID in in_path else ()),
            *((problems.PARAMETER_INVALID,) if query or in_path not in ([], [STUDY_ID]) else ()),
            *refusals,
            *(WRITE if method != "get" else ()),
        ]
        body = {JSON: takes.json_schema()} if takes is not None else body or {}
        answers = {200: (answers, json_of(answers))} if isinstance(answers, str) else answers

        def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(view)
            def read_and_view(**values: Any) -> Any:
                for parameter in in_path:
                    values[parameter.name] = parameter.read(values[parameter.name])
                for parameter in query:
                    values[parameter.name] = parameter.from_query()
                if takes is not None:
                    values["body"] = takes.read(json_body(), "", StatementError)
                return view(**values)

            head, *tail = view.__name__.split("_")
            name = head + "".join(map(str.capitalize, tail))
            summary = " ".join((inspect.getdoc(view) or "").split())
            parameters = [*in_path, *query, *headers]
            guarded = read_and_view if role is None else requires(role, of_some)(read_and_view)
            self.add(
                Operation(
                    method, path, name, summary, answers, problems_of_it, parameters, body, view=guarded
                )
            )
            return view

        return decorate

    def add(self, operation: Operation) -> None:
        """Register an operation, also one of other routes."""
        self.operations.append(operation)
        rule = operation.path.replace("{", "<").replace("}", ">")
        self.add_url_rule(rule, view_func=operation.view, methods=[operation.method])


def openapi_document(operations: Sequence[Operation]) -> Document:
    """Return the OpenAPI 3.1 document of a server with these operations."""
    paths: dict[str, Document] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = operation.describe()
    return {
        "openapi": "3.1.0",
        "info": {"title": "ldpkit collector", "version": version("ldpkit")},
        "paths": paths,
        "components": {"schemas": SCHEMAS, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _answer(description: str, content: Mapping[str, Any]) -> Document:
    answer: Document = {"description": description}
    return {**answer, "content": _content(content)} if content else answer


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
