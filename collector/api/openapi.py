"""Routes that describe themselves, and the OpenAPI document that they make."""

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from http import HTTPStatus
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from flask import Blueprint, Response, jsonify, request

from collector import problems
from collector.api.auth import authorize
from collector.api.bodies import json_and_bytes
from collector.api.parameters import IN_PATH, Parameter
from collector.keys import Role
from ldp_client.documents.errors import StatementError
from ldp_client.documents.report import REPORT
from ldp_client.documents.shapes import Record
from ldp_client.documents.signed import SIGNED_STUDY
from schemas.study import STUDY

JSON = "application/json"
Document = dict[str, Any]

TEXT = {"type": "string"}
# The documents of bodies and answers. Devices and authors read three of them, and define these.
SCHEMAS: Document = {
    "Study": STUDY.json_schema(),
    "SignedStudy": SIGNED_STUDY.json_schema(),
    "Report": REPORT.json_schema(),
    **json.loads((Path(__file__).parent / "schemas.json").read_text("utf-8")),
}
PROBLEM = {
    "description": "A problem (RFC 9457). `type` names it, and `advice` is what the sender can do.",
    "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    "headers": {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}},
}


def reference(name: str) -> Document:
    """Return a reference to a schema in SCHEMAS."""
    return {"$ref": f"#/components/schemas/{name}"}


class Operation(NamedTuple):
    """One method of one path.

    needs_key: whether an operator's key is needed. document: the OpenAPI operation object. view: the view,
    which checks the key.
    """

    method: str
    path: str
    name: str
    needs_key: bool
    document: Document
    view: Callable[..., Any]


class Api(Blueprint):
    """Routes with their descriptions. A view's function names its operation, its docstring describes it."""

    def __init__(self, name: str, import_name: str) -> None:
        super().__init__(name, import_name)
        self.operations: list[Operation] = []

    def operation(
        self,
        method: str,
        path: str,
        answer: str | Document = TEXT,
        *,
        statuses: Sequence[int] = (200,),
        media_type: str = JSON,
        role: Role | None = None,
        of_some: bool = False,
        is_provable: bool = False,
        query: Sequence[Parameter] = (),
        headers: Sequence[Parameter] = (),
        takes: Record | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a view, which gets the values of its path, its query and its body by name.

        Args:
            method: in lower case.
            path: as OpenAPI has it, with {names}.
            answer: a name in SCHEMAS, or a schema.
            statuses: of its answers.
            media_type: of its answers.
            role: the role that a key must have.
            of_some: as `authorize` takes it.
            is_provable: whether the view itself asks for a key, or for another proof.
            query: the parameters of its query.
            headers: headers that it reads.
            takes: what its body must be; the view gets it as `body`.
            body: the body's media types, if the view reads it.
        """
        # 1. Describe it.
        in_path = [IN_PATH[name] for name in re.findall(r"\{(\w+)\}", path)]
        answers = {media_type: reference(answer) if isinstance(answer, str) else answer}
        document: Document = {"responses": _responses(statuses, answers)}
        if parameters := [*in_path, *query, *headers]:
            document["parameters"] = [parameter.describe() for parameter in parameters]
        if takes is not None:
            body = {JSON: takes.json_schema()}
        if body:
            document["requestBody"] = {"required": True, "content": _content(body)}
        if needs_key := role is not None or is_provable:
            document["security"] = [{}, {"key": []}] if is_provable else [{"key": []}]

        # 2. Register it.
        def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
            @wraps(view)
            def read_and_view(**values: Any) -> Any:
                if role is not None:
                    authorize(role, of_some)
                for parameter in in_path:
                    values[parameter.name] = parameter.read(values[parameter.name])
                for parameter in query:
                    text = request.args.get(parameter.name)
                    values[parameter.name] = None if text is None else parameter.read(text)
                if takes is not None:
                    values["body"] = takes.read(json_and_bytes()[0], "", StatementError)
                return view(**values)

            head, *tail = view.__name__.split("_")
            name = document["operationId"] = head + "".join(map(str.capitalize, tail))
            document["summary"] = " ".join((inspect.getdoc(view) or "").split())
            self.add(Operation(method, path, name, needs_key, document, read_and_view))
            return view

        return decorate

    def add(self, operation: Operation) -> None:
        """Register an operation, also of other routes."""
        self.operations.append(operation)
        rule = operation.path.replace("{", "<").replace("}", ">")
        self.add_url_rule(rule, view_func=operation.view, methods=[operation.method])


def serve_document(api: Api, operations: Callable[[], Sequence[Operation]]) -> None:
    """Serve the OpenAPI document of all operations of a server."""

    @api.operation("get", "/openapi.json", {"type": "object"})
    def read_api() -> Response:
        """Return the OpenAPI document of this kind of server."""
        return jsonify(openapi_document(operations()))


def openapi_document(operations: Sequence[Operation]) -> Document:
    """Return the OpenAPI 3.1 document of a server with these operations."""
    paths: dict[str, Document] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method] = operation.document
    return {
        "openapi": "3.1.0",
        "info": {"title": "ldpkit collector", "version": version("ldpkit")},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "responses": {"Problem": PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _responses(statuses: Sequence[int], answers: Mapping[str, Any]) -> Document:
    """Return the responses of an operation. answers: {media type: schema}; problems have others."""
    responses: Document = {"default": {"$ref": "#/components/responses/Problem"}}
    for status in statuses:
        responses[str(status)] = {"description": HTTPStatus(status).phrase}
        if status != HTTPStatus.NOT_MODIFIED:
            responses[str(status)]["content"] = _content(answers)
    return responses


def _content(schemas: Mapping[str, Any]) -> Document:
    return {media_type: {"schema": schema} for media_type, schema in schemas.items()}
