"""Routes for operators: studies and their health, tickets, keys, the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from flask import Blueprint, Response, jsonify, request

from collector import audit_log, problems
from collector.api.auth import acting_key, requires
from collector.api.openapi import (
    JSON,
    KEY,
    REQUEST,
    STUDY_ID,
    WRITE,
    Operation,
    json_of,
)
from collector.api.parameters import whole_parameter
from collector.context import Collector, current_collector
from collector.daily import documents_of
from collector.keys import Role, list_keys
from collector.operator import actions
from collector.operator.actions import make_tickets, require_token
from collector.operator.overview import Seen, listed, status_of
from collector.problems import PARAMETER_INVALID, ProblemError, unknown_study
from collector.retention import kept_of
from collector.store import StudyOverview
from collector.views.bodies import json_body
from ldp_client.documents.errors import StatementError
from ldp_client.documents.fields import Boolean, Day, Identifier, Integer, OneOf, Text
from ldp_client.documents.shapes import ListOf, Record
from schemas import Study

operating = Blueprint("operating", __name__, url_prefix="/v1")
# Each ticket is a line of the answer; larger numbers take several requests.
MOST_TICKETS = 10_000
MOST_LINES = 10_000
LINES = 100
MOST_STUDIES = 1000
TICKETS = Record(
    {"count": Integer(1, MOST_TICKETS)},
    {"public": ListOf(Record({"field": Identifier(), "value": Text(200)}), 0, 64, "field")},
)
UPKEEP = Record({}, {"date": Day(), "recount": Boolean()})
NEW_KEY = Record(
    {"name": Identifier(), "role": OneOf(tuple(role.value for role in Role))},
    {"studies": ListOf(Identifier(), 1, MOST_STUDIES), "expires": Day()},
)


@operating.get("/studies")
@requires(Role.READ, of_some=True)
def list_studies() -> Response:
    """Return every study that the key covers."""
    collector, key = current_collector(), acting_key()
    studies = [study for study in collector.studies.get() if key.reaches(study.id)]
    lines = [listed(study, _document(collector, study), collector.today()) for study in studies]
    return jsonify(studies=lines)


@operating.get("/studies/<study_id>/status")
@requires(Role.READ)
def show_status(study_id: str) -> Response:
    """Return one study's status: reports by day and version, refusals, and warnings."""
    collector = current_collector()
    study = next((one for one in collector.studies.get() if one.id == study_id), None)
    if study is None:
        raise unknown_study(study_id)
    return jsonify(status(collector, study, collector.metrics.refused()))


def status(
    collector: Collector, study: StudyOverview, refusals: Mapping[str, Mapping[str, int]]
) -> dict[str, Any]:
    """Return `status_of` for a study of a running collector. refusals: of all studies."""
    document, arrivals, today = _document(collector, study), collector.arrivals.get(), collector.today()
    kept = kept_of(study.id, study.number, documents_of(collector, study.id), arrivals, today)
    with collector.database.read() as session:
        seen = Seen(arrivals, refusals.get(study.id, {}), kept)
        return status_of(session, study, document, seen, today)


def _document(collector: Collector, study: StudyOverview) -> Study:
    return collector.rules.find(study.id, study.version).study


@operating.post("/studies/<study_id>/tickets")
@requires(Role.OPERATE)
def invite(study_id: str) -> Response:
    """Make tickets and return them, only now; from then on, only invited reports are admitted."""
    asked = TICKETS.read(json_body(), "", StatementError)
    public = {one["field"]: one["value"] for one in asked["public"] or ()}
    made = make_tickets(current_collector(), study_id, asked["count"], public, acting_key())
    tickets, warnings = made
    return jsonify(tickets=tickets, warnings=warnings)


@operating.post("/studies/<study_id>/tickets/revoke")
@requires(Role.OPERATE)
def revoke_tickets(study_id: str) -> Response:
    """Forget the tickets, so that only new ones admit reports."""
    actions.revoke_tickets(current_collector(), study_id, acting_key())
    return jsonify(id=study_id)


@operating.post("/studies/<study_id>/tickets/disable")
@requires(Role.OPERATE)
def disable_tickets(study_id: str) -> Response:
    """Forget the tickets and admit reports without tickets."""
    actions.disable_tickets(current_collector(), study_id, acting_key())
    return jsonify(id=study_id)


@operating.post("/upkeep")
@requires(Role.OPERATE)
def keep_up() -> Response:
    """Run the daily upkeep now; or, with `recount`, recount the running summaries."""
    asked, wrong = UPKEEP.read(json_body(), "", StatementError), []
    if asked["recount"]:
        wrong = actions.count_again(current_collector(), acting_key())
    else:
        day = date.fromisoformat(asked["date"]) if asked["date"] else None
        actions.keep_up(current_collector(), day, acting_key())
    return jsonify(wrong=[{"study": study_id, "version": version} for study_id, version in wrong])


@operating.get("/keys")
@requires(Role.OPERATE)
def show_keys() -> Response:
    """Return every key by name; needs the operator's token."""
    require_token(acting_key())
    with current_collector().database.read() as session:
        return jsonify(keys=[key.document() for key in list_keys(session)])


@operating.post("/keys")
@requires(Role.OPERATE)
def make_key() -> Response:
    """Make a key and return it, only now."""
    require_token(acting_key())
    asked = NEW_KEY.read(json_body(), "", StatementError)
    expires = date.fromisoformat(asked["expires"]) if asked["expires"] else None
    bound = (Role(asked["role"]), asked["studies"], expires)
    key, warnings = actions.make_key(current_collector(), asked["name"], *bound, acting_key())
    response = jsonify(name=asked["name"], key=key, warnings=warnings)
    response.status_code = 201
    return response


@operating.delete("/keys/<name>")
@requires(Role.OPERATE)
def drop_key(name: str) -> Response:
    """Make a key useless from now on."""
    require_token(acting_key())
    Identifier().read(name, "name", StatementError)
    actions.drop_key(current_collector(), name, acting_key())
    return jsonify(name=name, removed=True)


@operating.get("/audit-log")
@requires(Role.OPERATE, of_some=True)
def read_audit_log() -> Response:
    """Return the last lines, the newest first; a key for some studies sees only theirs."""
    most = whole_parameter("limit") or LINES
    if most > MOST_LINES:
        raise ProblemError(PARAMETER_INVALID, f"must be at most {MOST_LINES}", "limit")
    text = request.args.get("since")
    try:
        since = None if text is None else date.fromisoformat(Day().read(text, "since", StatementError))
    except StatementError as error:
        raise ProblemError(PARAMETER_INVALID, error.problem, "since") from None
    with current_collector().database.read() as session:
        found = audit_log.entries(session, most, since, acting_key().studies)
    return jsonify(entries=[entry._asdict() for entry in found])


LIMIT = {"name": "limit", "in": "query", "schema": Integer(1, MOST_LINES).json_schema()}
SINCE = {"name": "since", "in": "query", "schema": Day().json_schema()}
NAME = {"name": "name", "in": "path", "required": True, "schema": Identifier().json_schema()}
OPERATIONS = (
    Operation(
        "get",
        "/v1/studies",
        "listStudies",
        "Every study that the key is for.",
        {200: ("The studies, by id", json_of("Studies"))},
        KEY,
    ),
    Operation(
        "get",
        "/v1/studies/{study_id}/status",
        "readStatus",
        "Reports by day and version, what is refused since the collector started, and what to look after.",
        {200: ("The study", json_of("Status"))},
        (*KEY, problems.STUDY_UNKNOWN),
        (STUDY_ID,),
    ),
    Operation(
        "post",
        "/v1/studies/{study_id}/tickets",
        "makeTickets",
        "Make tickets, and let only invited reports in from now on.",
        {200: ("The tickets, shown only once", json_of("Tickets"))},
        (*KEY, *REQUEST, problems.STUDY_UNKNOWN, *WRITE),
        (STUDY_ID,),
        {JSON: TICKETS.json_schema()},
    ),
    *(
        Operation(
            "post",
            f"/v1/studies/{{study_id}}/tickets/{name}",
            f"{name}Tickets",
            text,
            {200: ("Done", json_of("Named"))},
            (*KEY, problems.STATEMENT_INVALID, problems.STUDY_UNKNOWN, *WRITE),
            (STUDY_ID,),
        )
        for name, text in (
            ("revoke", "Revoke the tickets, so that only new ones admit reports."),
            ("disable", "Revoke the tickets and admit reports without tickets."),
        )
    ),
    Operation(
        "post",
        "/v1/upkeep",
        "keepUp",
        "Run the daily upkeep now; or, with `recount`, recount the running summaries.",
        {200: ("The versions whose summary was wrong", json_of("Upkeep"))},
        (*KEY, *REQUEST, *WRITE),
        (),
        {JSON: UPKEEP.json_schema()},
    ),
    Operation(
        "get",
        "/v1/keys",
        "listKeys",
        "Every key by name; with the operator's token.",
        {200: ("The keys", json_of("Keys"))},
        KEY,
    ),
    Operation(
        "post",
        "/v1/keys",
        "makeKey",
        "Make a key; with the operator's token.",
        {201: ("The key, shown only once", json_of("NewKey"))},
        (*KEY, *REQUEST, *WRITE),
        (),
        {JSON: NEW_KEY.json_schema()},
    ),
    Operation(
        "delete",
        "/v1/keys/{name}",
        "removeKey",
        "Make a key useless; with the operator's token.",
        {200: ("Removed", json_of("RemovedKey"))},
        (*KEY, problems.STATEMENT_INVALID, *WRITE),
        (NAME,),
    ),
    Operation(
        "get",
        "/v1/audit-log",
        "readAuditLog",
        "What operators did, the newest first.",
        {200: ("The lines", json_of("AuditLog"))},
        (*KEY, problems.PARAMETER_INVALID),
        (LIMIT, SINCE),
    ),
)
