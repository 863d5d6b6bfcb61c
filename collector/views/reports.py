"""Upload one report, or many."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, jsonify

from collector import batches, intake
from collector.body import json_body
from collector.context import current_collector
from schemas import Report
from schemas.errors import ReportError
from schemas.report import MAX_BYTES

reports = Blueprint("reports", __name__, url_prefix="/v1/studies/<study_id>/reports")


@reports.put("/<report_id>")
def put(study_id: str, report_id: str) -> Response:
    """201 once the report is durable, 200 if it was before."""
    collector = current_collector()
    report = Report.from_document(json_body(MAX_BYTES))
    if report.id != report_id:
        raise ReportError("id", "differs from the id in the address")
    receipt = intake.store_one(collector, study_id, intake.check(collector, study_id, report))
    response = jsonify(id=report.id, result=receipt.value)
    response.status_code = 201 if receipt is intake.Receipt.STORED else 200
    return response


@reports.post("")
def post(study_id: str) -> Response:
    """200 with counts and the failed ones, once all others are durable."""
    collector = current_collector()
    document: Any = json_body()
    return jsonify(batches.receive(collector, study_id, document))
