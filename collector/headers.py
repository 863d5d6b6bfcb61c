"""The headers that every answer has unless it says otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from flask import Response

IDENTITY = "LDPKit-Collector"

Headers = Sequence[tuple[str, str]]


def default_headers(identity: bytes) -> Headers:
    """identity: which collector answers; a device drops a report at the word of its own collector only."""
    return (
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        (IDENTITY, identity.hex()),
    )


def harden(response: Response, defaults: Headers) -> Response:
    """Set the headers that are missing."""
    for name, value in defaults:
        response.headers.setdefault(name, value)
    return response
