"""Upload one report or many; withdraw one."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, request

from collector import problems
from collector.api.auth import withdrawing_key
from collector.api.openapi import RIGHT, TOKEN_NOTE, TOKENS, UPLOAD, WRITE, Operation, json_of
from collector.api.parameters import (
    ENCODING,
    REPORT_ID,
    STUDY_ID,
    TICKET_HEADER,
    WITHDRAWAL_HEADER,
    report_id_bytes,
)
from collector.context import current_collector
from collector.reports import intake
from collector.reports.withdraw import WITHDRAWN, withdraw
from collector.views import batches
from collector.views.bodies import opened_body, parse_reports, require_json
from collector.views.handling import refuse_upload
from ldp_client.documents.errors import ReportError
from ldp_client.documents.report import MAX_BYTES
from schemas import Report

reports = Blueprint("reports", __name__, url_prefix="/v1/studies/<study_id>/reports")
reports.register_error_handler(Exception, refuse_upload)


@reports.put("/<report_id>")
def put(study_id: str, report_id: str) -> Response:
    """Store a report: return 201 once it is durable, or 200 if it was durable before."""
    collector = current_collector()
    require_json()
    collector.limits.require_some(study_id)
    with opened_body(MAX_BYTES) as body:
        report = Report.from_document(parse_reports(body))
        if report.id != report_id:
            raise ReportError(
                "id", "differs from the id in the address", code="report.id_differs_from_address"
            )
        with intake.naming_study(collector, study_id, report.version):
            packed = intake.check(collector, study_id, report)
    with intake.naming_study(collector, study_id, report.version):
        along = request.headers.get(intake.TICKET), request.headers.get("Authorization")
        receipt = intake.submit_one(collector, study_id, packed, *along)
    response = jsonify(id=report.id, result=receipt.value)
    response.status_code = 201 if receipt is intake.Receipt.STORED else 200
    return response


@reports.post("")
def post(study_id: str) -> Response:
    """Store many reports: return 200 with counts and failures once all other reports are durable."""
    collector = current_collector()
    require_json()
    collector.limits.require_some(study_id)
    with opened_body() as body:
        batch = batches.check(collector, study_id, parse_reports(body))
    return jsonify(batches.store_checked(collector, study_id, batch))


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
            problems.TICKET_NEEDED,
            *TOKENS,
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
