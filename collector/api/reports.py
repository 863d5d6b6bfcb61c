"""Upload one report or many; withdraw one."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from http import HTTPStatus
from threading import Lock
from typing import TYPE_CHECKING

from flask import Response, jsonify, request

from collector.api.auth import withdrawing_key
from collector.api.bodies import sent_bytes
from collector.api.handling import DEFAULT_HEADERS, refuse_upload
from collector.api.openapi import JSON, Api, reference
from collector.api.parameters import ENCODING, TICKET_HEADER, WITHDRAWAL_HEADER
from collector.audit_log import record_daily
from collector.context import Collector, current_collector
from collector.keys import Key
from collector.reports.uploads import HEADERS, accept
from collector.reports.withdraw import Refuse, withdraw
from ldp_client.documents.report import MAX_BYTES

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

reports = Api("reports", __name__)
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

    def __init__(self, plain: WSGIApplication, collector: Collector) -> None:
        self.plain = plain
        self._collector = collector
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
        route = "reports.upload_report" if method == "PUT" else "reports.upload_reports"
        self._collector.metrics.observe_request(route, time.perf_counter() - start)
        size = ("Content-Length", str(len(answer.body)))
        status = f"{answer.status} {HTTPStatus(answer.status).phrase}"
        start_response(status, [*answer.headers, size, *DEFAULT_HEADERS])
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


@reports.operation(
    "put",
    "/v1/studies/{study_id}/reports/{report_id}",
    "Receipt",
    statuses=(200, 201),
    headers=(ENCODING, TICKET_HEADER),
    body={JSON: reference("Report")},
)
def upload_report(study_id: str, report_id: bytes) -> Response:
    """Store one report, durably and once; sending it again does no harm: 200 says that it was stored before.

    If the study has tickets, Authorization carries a token, as in RFC 9577.
    """
    return _accept(study_id, report_id.hex(), MAX_BYTES)


@reports.operation(
    "post",
    "/v1/studies/{study_id}/reports",
    "BatchResult",
    headers=(ENCODING,),
    body={JSON: reference("Batch")},
)
def upload_reports(study_id: str) -> Response:
    """Store many reports; failed ones are listed and the others are durable."""
    return _accept(study_id, None, current_collector().settings.body_limit)


def _accept(study_id: str, report_id: str | None, limit: int) -> Response:
    collector = current_collector()
    body = sent_bytes(min(limit, collector.settings.body_limit))
    answer = accept(collector, study_id, report_id, body, _headers_of(request.environ))
    return Response(answer.body, answer.status, answer.headers)


def _headers_of(environ: WSGIEnvironment) -> dict[str, str]:
    return {name: environ[variable] for name, variable in VARIABLES.items() if variable in environ}


@reports.operation(
    "delete",
    "/v1/studies/{study_id}/reports/{report_id}",
    "Withdrawal",
    headers=(WITHDRAWAL_HEADER,),
    is_provable=True,
)
def withdraw_report(study_id: str, report_id: bytes) -> Response:
    """Delete a report permanently for its device or an operator; only its id is kept.

    If it has not arrived yet, its device gets a receipt as well, and the report is refused when it arrives.
    """
    return withdraw_by(withdrawing_key(report_id.hex()), study_id, report_id)


def withdraw_by(
    key: Key | None, study_id: str, report_id: bytes, refuse: Refuse = lambda _session, _study: None
) -> Response:
    """Delete a report for an operator with a key, or for its device, and return the receipt."""
    collector = current_collector()
    withdraw(collector, study_id, report_id, key is None, refuse)
    if key is not None:
        record_daily(collector.database, collector.writer.act, key.name, "delete reports", study_id)
    return jsonify(id=report_id.hex(), result="withdrawn")
