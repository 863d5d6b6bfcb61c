"""How long reports are kept, over HTTP, and deleting those that were kept for long enough."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify

from collector import problems
from collector.context import current_collector
from collector.operator.acting import MOST_AT_ONCE, delete_overdue_of
from collector.operator.days import kept_everywhere
from collector.storage.keys import Role
from collector.views.auth import acting_key, requires
from collector.views.openapi import KEY, STUDY_ID, WRITE, Operation, json_of

retaining = Blueprint("retaining", __name__, url_prefix="/v1")


@retaining.get("/retention")
@requires(Role.READ, of_some=True)
def list_retention() -> Response:
    """What every version of every study that the key is for states, and what is overdue."""
    key = acting_key()
    found = [kept for kept in kept_everywhere(current_collector()) if key.reaches(kept.study)]
    return jsonify(retention=[kept.document() for kept in found])


@retaining.post("/studies/<study_id>/retention")
@requires(Role.OPERATE)
def run_retention(study_id: str) -> Response:
    """Delete what is overdue of a study."""
    deleted = delete_overdue_of(current_collector(), study_id, acting_key())
    return jsonify(id=study_id, deleted=deleted, complete=deleted < MOST_AT_ONCE)


OPERATIONS = (
    Operation(
        "get",
        "/v1/retention",
        "listRetention",
        "How long each version's reports are kept, of those that state it, and how many are overdue.",
        {200: ("By study and version", json_of("Retention"))},
        KEY,
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/retention",
        "runRetention",
        "Delete the reports of a study that were kept for as long as it states, as the server does each day.",
        {200: ("How many were deleted; another request goes on where not all were", json_of("Deleted"))},
        (*KEY, problems.STATEMENT_INVALID, problems.STUDY_UNKNOWN, *WRITE),
        (STUDY_ID,),
    ),
)
