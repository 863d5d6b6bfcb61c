"""How long reports are kept, over HTTP, and deleting those that were kept for long enough."""

from __future__ import annotations

from functools import partial

from flask import Blueprint, Response, jsonify

from collector import problems
from collector.context import Collector, current_collector
from collector.operator.days import kept_everywhere, note_deleted
from collector.operator.stated_retention import delete_overdue
from collector.problems import STATEMENT_INVALID, ProblemError, unknown_study
from collector.storage.keys import Role
from collector.views.auth import acting_key, requires
from collector.views.openapi import KEY, STUDY_ID, WRITE, Operation, json_of
from ldp_client.documents.errors import InputError

retaining = Blueprint("retaining", __name__, url_prefix="/v1")
# In one request: some ten seconds.
MOST_AT_ONCE = 100_000


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
    collector = current_collector()
    if collector.current.find(study_id) is None:
        raise unknown_study(study_id)
    deleted = delete_overdue_of(collector, study_id, acting_key().name)
    return jsonify(id=study_id, deleted=deleted, complete=deleted < MOST_AT_ONCE)


def delete_overdue_of(collector: Collector, study_id: str, by: str) -> int:
    """Delete what is overdue of a study, or about MOST_AT_ONCE of it; how many. by: a key's name.

    Raises ProblemError where this day is in doubt.
    """
    find, deleted = partial(collector.rules.find, reserved=True), 0
    for kept in kept_everywhere(collector):
        if kept.study != study_id or deleted >= MOST_AT_ONCE:
            continue
        try:
            most = MOST_AT_ONCE - deleted
            now = delete_overdue(collector.writer.act, find, kept, collector.today(), by, most)
        except InputError as error:
            raise ProblemError(STATEMENT_INVALID, str(error)) from None
        note_deleted(collector, kept, now)
        deleted += now
    return deleted


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
