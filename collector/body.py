"""Reading a request's JSON body within its limits."""

from __future__ import annotations

from typing import Any

from flask import request

from collector.context import current_collector
from collector.problems import BODY_TOO_LARGE, MALFORMED_JSON, MEDIA_TYPE_UNSUPPORTED, ProblemError
from schemas.canonical import parse_json
from schemas.errors import DocumentError


def json_body(limit: int | None = None) -> Any:
    """The parsed body. Raises ProblemError when it is not JSON within the collector's limit in bytes.

    limit: a lower one.
    """
    _check_form()
    most = current_collector().body_limit
    limit = most if limit is None else min(limit, most)
    body = _read(limit)
    try:
        return parse_json(body, DocumentError, limit)
    except DocumentError as error:
        raise ProblemError(MALFORMED_JSON, error.problem, error.field) from None


def _read(limit: int) -> bytes:
    # One byte more than allowed: Werkzeug cuts a chunked body at its limit without a word.
    request.max_content_length = limit + 1
    body = request.get_data(cache=False)
    if len(body) > limit:
        raise ProblemError(BODY_TOO_LARGE, f"the body is above {limit} bytes")
    return body


def _check_form() -> None:
    if request.mimetype not in ("application/json", ""):
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body is {request.mimetype!r}")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, "the body has a content encoding")
