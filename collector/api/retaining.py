"""Routes for the retention of reports, and for deleting them."""

from __future__ import annotations

from datetime import date

from flask import Blueprint, Response, jsonify

from collector import problems
from collector.api.auth import acting_key, requires
from collector.api.openapi import JSON, KEY, REQUEST, STUDY_ID, WRITE, Operation, json_of
from collector.context import current_collector
from collector.daily import kept_everywhere
from collector.keys import Role
from collector.operator import actions
from collector.operator.actions import delete_overdue_of, delete_study_of, expire_reports
from collector.views.bodies import json_body
from ldp_client.documents.errors import StatementError
from ldp_client.documents.fields import Day
from ldp_client.documents.shapes import Record

retaining = Blueprint("retaining", __name__, url_prefix="/v1")
EXPIRY = Record({}, {"before": Day()})


@retaining.get("/retention")
@requires(Role.READ, of_some=True)
def list_retention() -> Response:
    """Return the stated retention of all versions that the key covers, and their overdue reports."""
    key = acting_key()
    found = [kept for kept in kept_everywhere(current_collector()) if key.reaches(kept.study)]
    return jsonify(retention=[kept.document() for kept in found])


@retaining.post("/studies/<study_id>/expire")
@requires(Role.OPERATE)
def expire(study_id: str) -> Response:
    """Delete a study's reports from before a day, by default its overdue reports."""
    before = EXPIRY.read(json_body(), "", StatementError)["before"]
    if before is None:
        return _deleted(study_id, delete_overdue_of(current_collector(), study_id, acting_key()))
    day = date.fromisoformat(before)
    return _deleted(study_id, expire_reports(current_collector(), study_id, day, acting_key()))


@retaining.delete("/studies/<study_id>")
@requires(Role.OPERATE)
def delete(study_id: str) -> Response:
    """Close a study permanently and delete its reports."""
    return _deleted(study_id, delete_study_of(current_collector(), study_id, acting_key()))


def _deleted(study_id: str, count: int) -> Response:
    return jsonify(id=study_id, deleted=count, complete=count < actions.MOST_AT_ONCE)


DELETED = {200: ("How many were deleted; another request goes on where not all were", json_of("Deleted"))}
OPERATIONS = (
    Operation(
        "get",
        "/v1/retention",
        "listRetention",
        "The retention of each version that states one, and how many of its reports are overdue.",
        {200: ("By study and version", json_of("Retention"))},
        KEY,
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/expire",
        "expireReports",
        "Delete the reports of a study that came before a day, or that were kept for as long as it states.",
        DELETED,
        (*KEY, *REQUEST, problems.STUDY_UNKNOWN, *WRITE),
        (STUDY_ID,),
        {JSON: EXPIRY.json_schema()},
    ),
    Operation(
        "delete",
        "/v1/studies/{study_id}",
        "deleteStudy",
        "Close a study permanently and delete all its reports.",
        DELETED,
        (*KEY, problems.STATEMENT_INVALID, problems.STUDY_UNKNOWN, *WRITE),
        (STUDY_ID,),
    ),
)
