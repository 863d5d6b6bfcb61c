"""Upload one report or many; withdraw one."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING

from flask import Blueprint, Response, jsonify, request

from collector import problems
from collector.api.auth import withdrawing_key
from collector.api.bodies import sent_bytes
from collector.api.handling import Headers, refuse_upload
from collector.api.openapi import RIGHT, TICKET_PROBLEMS, TOKEN_NOTE, UPLOAD, WRITE, Operation, json_of
from collector.api.parameters import (
    ENCODING,
    REPORT_ID,
    STUDY_ID,
    TICKET_HEADER,
    WITHDRAWAL_HEADER,
    report_id_bytes,
)
from collector.context import Collector, current_collector
from collector.reports.uploads import HEADERS, accept
from collector.reports.withdraw import WITHDRAWN, withdraw
from ldp_client.documents.report import MAX_BYTES

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

reports = Blueprint("reports", __name__, url_prefix="/v1/studies/<study_id>/reports")
reports.register_error_handler(Exception, refuse_upload)

UPLOAD_PATH = re.compile(r"/v1/studies/([a-z0-9][a-z0-9._-]{0,63})/reports(?:/([0-9a-f]{32}))?")
MOST_DIGITS = 12
# Anyone may read these. Only one thread at a time does: all of them together would leave an upload little of
# Python's time.
READ_PATH = re.compile(r"(?:/v1/studies/[^/]+(?:/signed)?|/s/[^/]+)/?")
TURN_SECONDS = 1.0
# The variables of the headers in a WSGI environment.
VARIABLES = {
    name: ("" if name == "Content-Type" else "HTTP_") + name.upper().replace("-", "_") for name in HEADERS
}


class UploadShortcut:
    """Wraps the WSGI application `plain`, accepts uploads of a stated length, and puts readers in a line.

    Flask's dispatch would be half of an upload's cost. The views below accept all other uploads.
    """

    def __init__(self, plain: WSGIApplication, collector: Collector, headers: Headers) -> None:
        self.plain = plain
        self._collector = collector
        self._headers = headers
        self._turn = Lock()
        limit = collector.settings.body_limit
        self._limits = {"PUT": min(MAX_BYTES, limit), "POST": limit}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        method, length = environ["REQUEST_METHOD"], environ.get("CONTENT_LENGTH", "")
        match = UPLOAD_PATH.fullmatch(environ["PATH_INFO"])
        if (
            match is None
            or (method, match[2] is None) not in (("PUT", False), ("POST", True))
            or not (length.isdecimal() and len(length) <= MOST_DIGITS and int(length) <= self._limits[method])
            or "HTTP_TRANSFER_ENCODING" in environ
        ):
            return self._read(environ, start_response)
        start = time.perf_counter()
        body = environ["wsgi.input"].read(int(length))
        answer = accept(self._collector, match[1], match[2], body, _headers_of(environ))
        # The names of the views.
        route = "reports.put" if method == "PUT" else "reports.post"
        self._collector.metrics.observe_request(route, time.perf_counter() - start)
        size = ("Content-Length", str(len(answer.body)))
        status = f"{answer.status} {HTTPStatus(answer.status).phrase}"
        start_response(status, [*answer.headers, size, *self._headers])
        return [answer.body]

    def _read(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Pass a request on to Flask. Requests for a study or its page take turns, unless one hangs."""
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD") or not READ_PATH.fullmatch(environ["PATH_INFO"]):
            return self.plain(environ, start_response)
        has_turn = self._turn.acquire(timeout=TURN_SECONDS)
        try:
            return self.plain(environ, start_response)
        finally:
            if has_turn:
                self._turn.release()


@reports.put("/<report_id>")
def put(study_id: str, report_id: str) -> Response:
    """Store a report: return 201 once it is durable, or 200 if it was durable before."""
    return _accept(study_id, report_id, MAX_BYTES)


@reports.post("")
def post(study_id: str) -> Response:
    """Store many reports: return 200 with counts and failures once all other reports are durable."""
    return _accept(study_id, None, current_collector().settings.body_limit)


def _accept(study_id: str, report_id: str | None, limit: int) -> Response:
    collector = current_collector()
    body = sent_bytes(min(limit, collector.settings.body_limit))
    answer = accept(collector, study_id, report_id, body, _headers_of(request.environ))
    return Response(answer.body, answer.status, answer.headers)


def _headers_of(environ: WSGIEnvironment) -> dict[str, str]:
    return {name: environ[variable] for name, variable in VARIABLES.items() if variable in environ}


@reports.delete("/<report_id>")
def delete(study_id: str, report_id: str) -> Response:
    """Withdraw a report for its device or an operator: return a receipt once it is permanently deleted.

    If it has not arrived yet, its device gets a receipt as well, and the report is refused when it arrives.
    """
    identifier = report_id_bytes(report_id)
    key = withdrawing_key(report_id)
    collector = current_collector()
    withdraw(collector, study_id, identifier, by_device=key is None)
    if key is not None:
        collector.daily.write(key, "delete reports", study_id)
    return jsonify(id=report_id, result=WITHDRAWN)


OPERATIONS = (
    Operation(
        "put",
        "/v1/studies/{study_id}/reports/{report_id}",
        "uploadReport",
        "Store one report, durably and once; sending it again does no harm. " + TOKEN_NOTE,
        {200: ("Stored before", json_of("Receipt")), 201: ("Stored", json_of("Receipt"))},
        (
            *UPLOAD,
            problems.REPORT_INVALID,
            problems.VERSION_UNKNOWN,
            *TICKET_PROBLEMS,
            problems.REPORT_CONFLICT,
            problems.STUDY_CLOSED,
            problems.REPORT_WITHDRAWN,
            problems.STUDY_NOT_OPEN,
        ),
        (STUDY_ID, REPORT_ID, ENCODING, TICKET_HEADER),
        json_of("Report"),
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/reports",
        "uploadReports",
        "Store many reports; failed ones are listed and the others are durable.",
        {200: ("What became of each", json_of("BatchResult"))},
        (*UPLOAD, problems.BATCH_INVALID, problems.BATCH_WRONG, problems.TICKET_NEEDED),
        (STUDY_ID, ENCODING),
        json_of("Batch"),
    ),
    Operation(
        "delete",
        "/v1/studies/{study_id}/reports/{report_id}",
        "withdrawReport",
        "Delete a report permanently; only its id is kept, so that a late copy is refused.",
        {200: ("Withdrawn", json_of("Withdrawal"))},
        (
            *RIGHT,
            problems.STUDY_UNKNOWN,
            problems.REPORT_UNKNOWN,
            problems.PARAMETER_INVALID,
            *WRITE,
        ),
        (STUDY_ID, REPORT_ID, WITHDRAWAL_HEADER),
    ),
)
