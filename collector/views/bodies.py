"""Read a request's body within its limits: JSON, plain or compressed; inflating stops at the limits."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import request

from collector.context import current_collector
from collector.problems import (
    BODY_TOO_LARGE,
    MALFORMED_ENCODING,
    MALFORMED_JSON,
    MEDIA_TYPE_UNSUPPORTED,
    ProblemError,
)
from ldp_client.documents.canonical import parse_json
from ldp_client.documents.errors import DocumentError

JSON = "application/json"
# A report has six fields and its payloads, and none of them has fewer bytes than this; a small body may have
# MOST_IN_SMALL values in any case. Each value can take a hundred bytes of memory.
BYTES_A_VALUE = 8
MOST_IN_SMALL = 1000
GZIP_WINDOW = 31
IDENTITY = "identity"
# Ids and noise are random, so real reports compress to a tenth at best, zeros to a thousandth. A short body
# may grow to SMALL_BYTES in any case.
MOST_GROWTH = 64
SMALL_BYTES = 1 << 16


def json_body(limit: int | None = None) -> Any:
    """Return the parsed JSON body. Raises ProblemError when it is not JSON within the limit in bytes.

    limit: lower than the collector's own.
    """
    return json_and_bytes(limit)[0]


def json_and_bytes(limit: int | None = None) -> tuple[Any, bytes]:
    """Return the parsed JSON body, and the body. Raises ProblemError as json_body does."""
    require_json()
    with opened_body(limit) as body, _json_problems():
        return parse_json(body, DocumentError, len(body)), body


def require_json() -> None:
    """Raise ProblemError if the body has another media type; without a type, JSON is assumed."""
    if request.mimetype not in ("", JSON):
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body is {request.mimetype[:64]!r}")


@contextmanager
def opened_body(limit: int | None = None) -> Iterator[bytes]:
    """Yield the body without its content encoding; the block parses and checks it.

    The bytes of all threads' blocks together are bounded. Raises ProblemError if the body exceeds the limit,
    before or after inflating, and if too much is being parsed.
    """
    collector = current_collector()
    most = collector.settings.body_limit
    limit = most if limit is None else min(limit, most)
    # Read the whole body before taking room, so that a slow sender does not block others.
    body = sent_bytes(limit)
    encoding = request.headers.get("Content-Encoding", IDENTITY).lower()
    growth = len(body) if encoding == IDENTITY else inflated_limit(len(body), encoding, limit)
    with collector.parsing.hold(growth):
        yield inflate(body, encoding, limit)


def body_bytes() -> bytes:
    """Return the body without its content encoding. Raises ProblemError as opened_body does."""
    with opened_body() as body:
        return body


def operators_json(limit: int) -> Any:
    """Return the parsed JSON body of an operator's request, which may be larger than a device's.

    limit: in bytes, whatever the setting. Raises ProblemError.
    """
    require_json()
    body = sent_bytes(limit)
    with _json_problems():
        return parse_json(body, DocumentError, limit)


def parse_reports(body: bytes) -> Any:
    """Parse a body of reports. Raises ProblemError, also for more values than reports can have."""
    most = MOST_IN_SMALL + len(body) // BYTES_A_VALUE
    # Each value but the first follows a comma or an opening bracket.
    if sum(map(body.count, (b",", b"[", b"{"))) > most:
        detail = f"has more than {most} values, which no reports of its length have"
        raise ProblemError(BODY_TOO_LARGE, detail)
    with _json_problems():
        return parse_json(body, DocumentError, len(body))


@contextmanager
def _json_problems() -> Iterator[None]:
    try:
        yield
    except DocumentError as error:
        raise ProblemError(MALFORMED_JSON, error.problem, error.field) from None


def sent_bytes(limit: int) -> bytes:
    """Return the body as it was sent. limit: in bytes, whatever the setting. Raises ProblemError."""
    # One byte more than allowed, because Werkzeug silently cuts a chunked body at its limit.
    request.max_content_length = limit + 1
    body = request.get_data(cache=False)
    if len(body) > limit:
        raise ProblemError(BODY_TOO_LARGE, f"the body is above {limit} bytes")
    return body


def inflated_limit(length: int, encoding: str, limit: int) -> int:
    """Return the most bytes that a body of that length and encoding may inflate to, at most `limit`."""
    return limit if encoding == IDENTITY else min(limit, max(SMALL_BYTES, MOST_GROWTH * length))


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """Return the body without its encoding: identity or gzip.

    Raises ProblemError for another encoding, for invalid data, and for more than `limit` bytes or MOST_GROWTH
    times the body's length.
    """
    if encoding == IDENTITY:
        return body
    limit = inflated_limit(len(body), encoding, limit)
    if encoding == "gzip":
        return _gunzip(body, limit)
    raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the content encoding is {encoding[:64]!r}")


def _gunzip(body: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(GZIP_WINDOW)
    try:
        inflated = stream.decompress(body, limit + 1)
    except zlib.error:
        raise ProblemError(MALFORMED_ENCODING, "the body is not gzip") from None
    if len(inflated) > limit:
        raise _too_large(limit)
    if not stream.eof or stream.unused_data:
        raise ProblemError(MALFORMED_ENCODING, "the body is not one whole gzip member")
    return inflated


def _too_large(limit: int) -> ProblemError:
    return ProblemError(BODY_TOO_LARGE, f"the inflated body is above {limit} bytes")
