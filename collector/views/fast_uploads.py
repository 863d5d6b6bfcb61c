"""A thin WSGI layer that handles well-formed uploads; Flask's dispatch would be half of their cost.

Its answers equal those of views/reports.py byte for byte. It passes on every request that is not plainly an
upload of reports in canonical form (see canonical_form.py).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

from collector.db import problem_of
from collector.reports import intake
from collector.reports.canonical_form import digest_of
from collector.store import PackedReport
from collector.views import batches
from collector.views.handling import default_headers, harden, response_of
from ldp_client.documents.report import MAX_BYTES

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from collector.context import Collector

UPLOAD_PATH = re.compile(r"/v1/studies/([^/]+)/reports(?:/([0-9a-f]{32}))?")
JSON = "application/json"
# As clients write it. Parameters mean nothing, because JSON is UTF-8.
JSON_TYPES = frozenset(
    [JSON] + [f"application/json;{space}charset={name}" for space in ("", " ") for name in ("utf-8", "UTF-8")]
)
TICKET = "HTTP_" + intake.TICKET.upper().replace("-", "_")
LONGEST_LENGTH = 12
# The names of the views for one report and for many.
ROUTES = ("reports.put", "reports.post")
STATUS = {intake.Receipt.STORED: "201 CREATED", intake.Receipt.DUPLICATE: "200 OK"}


class FastUploads:
    """Wraps the WSGI application `plain` and handles uploads."""

    def __init__(self, plain: WSGIApplication, collector: Collector) -> None:
        self.plain = plain
        self._collector = collector
        self._headers = default_headers(collector.identity)
        self._limits = {
            "PUT": min(MAX_BYTES, collector.settings.body_limit),
            "POST": collector.settings.body_limit,
        }

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        match = UPLOAD_PATH.fullmatch(environ["PATH_INFO"]) if self._is_simple(environ) else None
        if match is None or (match[2] is None) != (environ["REQUEST_METHOD"] == "POST"):
            return self.plain(environ, start_response)
        start = time.perf_counter()
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        study_id, report_id = match.groups()
        try:
            reports = self._read(study_id, report_id, body)
            if reports is None:
                environ["wsgi.input"] = BytesIO(body)
                return self.plain(environ, start_response)
            along = environ.get(TICKET), environ.get("HTTP_AUTHORIZATION")
            status, document = self._store(study_id, report_id, reports, *along)
        except Exception as error:
            problem = problem_of(error)
            if report_id is not None:
                problem = problem.naming(digest_of(body).decode("ascii", "replace"))
            self._collector.count_refusal(problem, study_id)
            self._collector.metrics.observe_request(ROUTES[report_id is None], time.perf_counter() - start)
            return harden(response_of(problem), self._headers)(environ, start_response)
        self._collector.metrics.observe_request(ROUTES[report_id is None], time.perf_counter() - start)
        answer = json.dumps(document, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        headers = [("Content-Type", JSON), ("Content-Length", str(len(answer))), *self._headers]
        start_response(status, headers)
        return [answer]

    def _is_simple(self, environ: WSGIEnvironment) -> bool:
        """Return True if the body is uncompressed JSON with a stated and permitted length."""
        length = environ.get("CONTENT_LENGTH", "")
        return (
            environ.get("CONTENT_TYPE") in JSON_TYPES
            and length.isdecimal()
            and len(length) <= LONGEST_LENGTH
            and int(length) <= self._limits.get(environ["REQUEST_METHOD"], -1)
            and "HTTP_CONTENT_ENCODING" not in environ
            and "HTTP_TRANSFER_ENCODING" not in environ
        )

    def _read(self, study_id: str, report_id: str | None, body: bytes) -> Sequence[PackedReport] | None:
        rules = self._collector.rules.find_in_use(study_id, digest_of(body))
        if rules is None:
            return None
        if report_id is None:
            intake.refuse_batch(rules)
            with self._collector.parsing.hold(len(body)):
                return rules.form.read_batch(body)
        report = rules.form.read(body)
        return [report] if report is not None and report.id.hex() == report_id else None

    def _store(
        self,
        study_id: str,
        report_id: str | None,
        reports: Sequence[PackedReport],
        ticket: str | None,
        authorization: str | None,
    ) -> tuple[str, dict[str, Any]]:
        if report_id is None:
            return "200 OK", batches.store(self._collector, study_id, reports)
        receipt = intake.submit_one(self._collector, study_id, reports[0], ticket, authorization)
        return STATUS[receipt], {"id": report_id, "result": receipt.value}
