"""Refusing an upload, and counting why: a client that is wrong shows in the metrics first."""

from __future__ import annotations

from flask import Response, request

from collector.context import current_collector
from collector.storage.failures import problem_of

UPLOADS = ("reports.put", "reports.post", "shares.put")


def refuse_upload(error: Exception) -> Response:
    """The problem of a request, counted by its reason where it was an upload."""
    problem = problem_of(error)
    if request.endpoint in UPLOADS:
        current_collector().metrics.count(0, 0, [problem.kind.name])
    return problem.response()
