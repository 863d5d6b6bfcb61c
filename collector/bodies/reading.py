"""Reading a request's body within its limits: JSON or CBOR, as it is or compressed."""

from __future__ import annotations

from typing import Any

from flask import request

from collector.bodies.cbor import TooManyValuesError, parse_cbor
from collector.bodies.inflating import IDENTITY, inflate
from collector.context import current_collector
from collector.http.problems import (
    BODY_TOO_LARGE,
    MALFORMED_CBOR,
    MALFORMED_JSON,
    MEDIA_TYPE_UNSUPPORTED,
    ProblemError,
)
from schemas.canonical import parse_json
from schemas.errors import DocumentError

JSON = "application/json"
CBOR = "application/cbor"
# In one body; a report of three questions has 19. Each may take a hundred bytes of memory.
MOST_VALUES = 2_000_000


def json_body(limit: int | None = None) -> Any:
    """The parsed JSON body. Raises ProblemError when it is not JSON within the limit in bytes.

    limit: lower than the collector's own.
    """
    return json_and_bytes(limit)[0]


def json_and_bytes(limit: int | None = None) -> tuple[Any, bytes]:
    """The parsed JSON body, and the body. Raises ProblemError as json_body does."""
    if body_form() != JSON:
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body is {request.mimetype[:64]!r}")
    limit = _limit(limit)
    body = body_bytes(limit)
    return parse_body(body, JSON, limit), body


def body_form() -> str:
    """The body's media type: JSON, which is also meant where none is named, or CBOR."""
    form = request.mimetype or JSON
    if form not in (JSON, CBOR):
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body is {form[:64]!r}")
    return form


def body_bytes(limit: int | None = None) -> bytes:
    """The body without its content encoding. Raises ProblemError above the limit, before and after."""
    limit = _limit(limit)
    # One byte more than allowed: Werkzeug cuts a chunked body at its limit without a word.
    request.max_content_length = limit + 1
    body = request.get_data(cache=False)
    if len(body) > limit:
        raise ProblemError(BODY_TOO_LARGE, f"the body is above {limit} bytes")
    return inflate(body, request.headers.get("Content-Encoding", IDENTITY).lower(), limit)


def parse_body(body: bytes, form: str, limit: int) -> Any:
    """The plain value in a body of that media type. Raises ProblemError."""
    try:
        return _parse_json(body, limit) if form == JSON else parse_cbor(body, MOST_VALUES)
    except TooManyValuesError as error:
        raise ProblemError(BODY_TOO_LARGE, error.problem) from None
    except DocumentError as error:
        kind = MALFORMED_JSON if form == JSON else MALFORMED_CBOR
        raise ProblemError(kind, error.problem, error.field) from None


def _parse_json(body: bytes, limit: int) -> Any:
    # A value stands behind a comma or an opening bracket, but for the first.
    if sum(map(body.count, (b",", b"[", b"{"))) > MOST_VALUES:
        raise TooManyValuesError("", f"has more than {MOST_VALUES} values")
    return parse_json(body, DocumentError, limit)


def _limit(limit: int | None) -> int:
    most = current_collector().settings.body_limit
    return most if limit is None else min(limit, most)
