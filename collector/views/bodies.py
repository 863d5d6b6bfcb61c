"""Reading a request's body within its limits: JSON or CBOR, as it is or compressed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import request

from collector.context import current_collector
from collector.problems import (
    BODY_TOO_LARGE,
    MALFORMED_CBOR,
    MALFORMED_JSON,
    MEDIA_TYPE_UNSUPPORTED,
    ProblemError,
)
from collector.views.cbor import TooManyValuesError, parse_cbor
from collector.views.inflating import IDENTITY, inflate, inflated_limit
from ldp_client.documents.canonical import parse_json
from ldp_client.documents.errors import DocumentError

JSON = "application/json"
CBOR = "application/cbor"
# A report has six fields and its payloads, and none of them is shorter than so many bytes; a small body may
# have MOST_IN_SMALL values whatever it is. Each can take a hundred bytes of memory.
BYTES_A_VALUE = {JSON: 8, CBOR: 3}
MOST_IN_SMALL = 1000


def json_body(limit: int | None = None) -> Any:
    """The parsed JSON body. Raises ProblemError when it is not JSON within the limit in bytes.

    limit: lower than the collector's own.
    """
    return json_and_bytes(limit)[0]


def json_and_bytes(limit: int | None = None) -> tuple[Any, bytes]:
    """The parsed JSON body, and the body. Raises ProblemError as json_body does."""
    if body_form() != JSON:
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body is {request.mimetype[:64]!r}")
    with opened_body(limit) as body, _problems_of(JSON):
        return parse_json(body, DocumentError, len(body)), body


def body_form() -> str:
    """The body's media type: JSON, which is also meant where none is named, or CBOR."""
    form = request.mimetype or JSON
    if form not in (JSON, CBOR):
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body is {form[:64]!r}")
    return form


@contextmanager
def opened_body(limit: int | None = None) -> Iterator[bytes]:
    """The body without its content encoding, while the block lasts, which parses and checks it.

    The bytes of all threads' blocks are bounded. Raises ProblemError above the limit, before and after
    inflating, and where too much is being parsed.
    """
    collector = current_collector()
    most = collector.settings.body_limit
    limit = most if limit is None else min(limit, most)
    # Whole before anything is held: somebody who sends slowly must keep nobody else out.
    body = _sent_bytes(limit)
    encoding = request.headers.get("Content-Encoding", IDENTITY).lower()
    growth = len(body) if encoding == IDENTITY else inflated_limit(len(body), encoding, limit)
    with collector.parsing.hold(growth):
        yield inflate(body, encoding, limit)


def body_bytes() -> bytes:
    """The body without its content encoding. Raises ProblemError as opened_body does."""
    with opened_body() as body:
        return body


def operators_json(limit: int) -> Any:
    """The parsed JSON body of somebody with an operator's key, who may send more than devices.

    limit: in bytes, whatever the setting. Raises ProblemError.
    """
    if body_form() != JSON:
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body is {request.mimetype[:64]!r}")
    body = _sent_bytes(limit)
    with _problems_of(JSON):
        return parse_json(body, DocumentError, limit)


def parse_reports(body: bytes, form: str) -> Any:
    """The plain value in a body of reports of that media type. Raises ProblemError."""
    most = MOST_IN_SMALL + len(body) // BYTES_A_VALUE[form]
    with _problems_of(form):
        if form == CBOR:
            return parse_cbor(body, most)
        # A value stands behind a comma or an opening bracket, but for the first.
        if sum(map(body.count, (b",", b"[", b"{"))) > most:
            raise TooManyValuesError("", f"has more than {most} values")
        return parse_json(body, DocumentError, len(body))


@contextmanager
def _problems_of(form: str) -> Iterator[None]:
    try:
        yield
    except TooManyValuesError as error:
        raise ProblemError(BODY_TOO_LARGE, f"{error.problem}, which no reports of its length have") from None
    except DocumentError as error:
        kind = MALFORMED_JSON if form == JSON else MALFORMED_CBOR
        raise ProblemError(kind, error.problem, error.field) from None


def _sent_bytes(limit: int) -> bytes:
    # One byte more than allowed: Werkzeug cuts a chunked body at its limit without a word.
    request.max_content_length = limit + 1
    body = request.get_data(cache=False)
    if len(body) > limit:
        raise ProblemError(BODY_TOO_LARGE, f"the body is above {limit} bytes")
    return body
