"""The headers that every answer has unless it says otherwise."""

from __future__ import annotations

from flask import Response

DEFAULTS = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))


def harden(response: Response) -> Response:
    """Set the headers that are missing."""
    for name, value in DEFAULTS:
        response.headers.setdefault(name, value)
    return response
