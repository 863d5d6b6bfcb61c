"""Read the body of a Flask request within its limits."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flask import request

from collector.context import current_collector
from collector.problems import BODY_TOO_LARGE, MEDIA_TYPE_UNSUPPORTED, ProblemError
from collector.reports.uploads import IDENTITY, decoded, parse_body, require_json


def json_and_bytes(limit: int | None = None) -> tuple[Any, bytes]:
    """Return the parsed JSON body, and the body. Raises ProblemError if it is not JSON within the limits.

    limit: in bytes, lower than the collector's own.
    """
    require_json(request.mimetype)
    with decoded_body(limit) as body:
        return parse_body(body), body


@contextmanager
def decoded_body(limit: int | None = None) -> Iterator[bytes]:
    """Yield the body without its content encoding, as `decoded` does. limit: as json_and_bytes takes it."""
    collector = current_collector()
    most = collector.settings.body_limit
    limit = most if limit is None else min(limit, most)
    # Read the whole body before taking room, so that a slow sender does not block others.
    sent = sent_bytes(limit)
    with decoded(collector, sent, request.headers.get("Content-Encoding", IDENTITY), limit) as body:
        yield body


def require_type(media_type: str) -> None:
    """Raise ProblemError if the body has another media type."""
    if request.mimetype != media_type:
        raise ProblemError(MEDIA_TYPE_UNSUPPORTED, f"the body must be {media_type}")


def sent_bytes(limit: int) -> bytes:
    """Return the body as it was sent. limit: in bytes, whatever the setting. Raises ProblemError."""
    # One byte more than allowed, because Werkzeug silently cuts a chunked body at its limit.
    request.max_content_length = limit + 1
    body = request.get_data(cache=False)
    if len(body) > limit:
        raise ProblemError(BODY_TOO_LARGE, f"the body is above {limit} bytes")
    return body
