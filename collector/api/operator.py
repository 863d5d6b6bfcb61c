"""Routes for operators: studies and their reports, tickets, keys, the audit log.

Each change writes a line of the audit log.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from functools import partial
from typing import Any, TypeVar

from flask import Response, jsonify
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from collector import audit_log, keys, retention
from collector.api.auth import acting_key
from collector.api.openapi import Api
from collector.api.parameters import LIMIT, SINCE
from collector.clock import doubt_of
from collector.context import Collector, current_collector
from collector.daily import UnfinishedError, Upkeep
from collector.db import Database
from collector.keys import TOKEN_KEY, Key, Role
from collector.problems import FORBIDDEN, STATEMENT_INVALID, UNAVAILABLE, ProblemError, unknown_study
from collector.status import checks_of, listed, status_of
from collector.tickets import codes
from ldp_client.documents.fields import Day, Identifier, Integer, OneOf, Text
from ldp_client.documents.shapes import ListOf, Record
from schemas.warnings import names_in_words

T = TypeVar("T")
operator = Api("operator", __name__)
# Each ticket is a line of the answer; larger numbers take several requests.
MOST_TICKETS = 10_000
LINES = 100
MOST_STUDIES = 1000
# Reports that one request deletes: this takes some ten seconds.
MOST_AT_ONCE = 100_000
PUBLIC = ListOf(Record({"field": Identifier(), "value": Text(200)}), 0, 64, "field")
TICKETS = Record({"count": Integer(1, MOST_TICKETS)}, {"public": PUBLIC})
UPKEEP = Record({}, {"date": Day()})
NEW_KEY = Record(
    {"name": Identifier(), "role": OneOf(tuple(role.value for role in Role))},
    {"studies": ListOf(Identifier(), 1, MOST_STUDIES), "expires": Day()},
)
EXPIRY = Record({"before": Day()})


def values_of(public: list[dict[str, str]] | None) -> dict[str, str]:
    """Return what PUBLIC read: public values by field."""
    return {value["field"]: value["value"] for value in public or ()}


@operator.operation("get", "/v1/studies", "Studies", role=Role.READ, of_some=True)
def list_studies() -> Response:
    """Return every study that the key covers."""
    collector, key = current_collector(), acting_key()
    studies = [study for study in collector.studies.get() if key.reaches(study.id)]
    return jsonify(studies=[listed(collector, study) for study in studies])


@operator.operation("get", "/v1/studies/{study_id}/status", "Status", role=Role.READ)
def read_status(study_id: str) -> Response:
    """Return reports by day and version, refusals since the collector started, and warnings."""
    collector = current_collector()
    study = next((study for study in collector.studies.get() if study.id == study_id), None)
    if study is None:
        raise unknown_study(study_id)
    return jsonify(status_of(collector, study, collector.metrics.totals().rejected_by_study))


@operator.operation("post", "/v1/studies/{study_id}/tickets", "Tickets", role=Role.OPERATE, takes=TICKETS)
def make_tickets(study_id: str, body: dict[str, Any]) -> Response:
    """Make tickets, and let only invited reports in from now on."""
    collector, by = current_collector(), acting_key().name
    public = values_of(body["public"])
    secret = collector.settings.ticket_secret
    if not secret:
        raise ProblemError(STATEMENT_INVALID, codes.NO_KEY)

    study = collector.rules.find(study_id, collector.current.require(study_id).version).study

    def act(session: Session) -> list[str]:
        late = timedelta(collector.settings.grace_days)
        codes.refuse_ended(session, study_id, collector.today(), late)
        return codes.make_tickets(session, study_id, body["count"], secret, public, by)

    return jsonify(tickets=_change_tickets(study_id, act), warnings=names_in_words(study))


@operator.operation("post", "/v1/studies/{study_id}/tickets/revoke", "Named", role=Role.OPERATE)
def revoke_tickets(study_id: str) -> Response:
    """Revoke the tickets, so that only new ones admit reports."""
    _change_tickets(study_id, partial(codes.revoke, study_id=study_id, by=acting_key().name))
    return jsonify(id=study_id)


@operator.operation("post", "/v1/studies/{study_id}/tickets/disable", "Named", role=Role.OPERATE)
def disable_tickets(study_id: str) -> Response:
    """Revoke the tickets and admit reports without tickets."""
    _change_tickets(study_id, partial(codes.disable, study_id=study_id, by=acting_key().name))
    return jsonify(id=study_id)


def _change_tickets(study_id: str, act: Callable[[Session], T]) -> T:
    collector = current_collector()
    collector.current.require(study_id)
    with _without_hurry(collector) as database:
        done = database.act(act)
    collector.has_changed(study_id)
    return done


@operator.operation("post", "/v1/upkeep", "Upkeep", role=Role.OPERATE, takes=UPKEEP)
def keep_up(body: dict[str, Any]) -> Response:
    """Run the daily upkeep now, for reports of all days."""
    collector, by = current_collector(), acting_key().name
    today = collector.today()
    # Today's date as the operator states it, if the clock is in doubt.
    day = None if body["date"] is None else date.fromisoformat(body["date"])

    def begin(session: Session) -> None:
        if day not in (None, today):
            detail = f"this collector's clock says {today} (UTC); set it right first"
            raise ProblemError(STATEMENT_INVALID, detail, "date")
        if day is None and (doubt := doubt_of(session, today)):
            advice = f'if today is {today}, confirm it: POST {{"date": "{today}"}}'
            raise ProblemError(STATEMENT_INVALID, f"{doubt}: {advice}")
        stated = "" if day is None else f"as of {day}, which the operator stated"
        audit_log.record(session, by, "upkeep", detail=stated)

    with collector.upkeep_room.hold():
        collector.writer.act(begin)
        try:
            with _without_hurry(collector) as database:
                upkeep = Upkeep(database, collector.today, collector.settings.ticket_secret)
                upkeep.run(today, even_if_done=True)
        except UnfinishedError as error:
            raise ProblemError(UNAVAILABLE, f"{error}; run this again") from None
        finally:
            collector.studies.forget()
    return jsonify(done=True)


@contextmanager
def _without_hurry(collector: Collector) -> Iterator[Database]:
    """Yield a second database object, whose connections have no limit on a statement's duration."""
    database = Database(collector.settings.database, collector.settings.lock_timeout)
    try:
        yield database
    except (DBAPIError, UnfinishedError) as error:
        # An error that shows a damaged file must also stop the server.
        collector.database.note(error.orig if isinstance(error, DBAPIError) else error.__cause__)
        raise
    finally:
        database.engine.dispose()


@operator.operation("post", "/v1/studies/{study_id}/expire", "Deleted", role=Role.OPERATE, takes=EXPIRY)
def expire_reports(study_id: str, body: dict[str, Any]) -> Response:
    """Delete the reports of a study from before a day; another request goes on where not all were deleted."""
    collector, before = current_collector(), date.fromisoformat(body["before"])
    collector.current.require(study_id)
    today = collector.today()
    if before > today:
        raise ProblemError(STATEMENT_INVALID, "is still to come: today's reports would go too", "before")
    if doubt := collector.writer.act(lambda session: doubt_of(session, today)):
        raise ProblemError(STATEMENT_INVALID, f"{doubt}: nothing was deleted")
    return _delete(study_id, partial(retention.delete_reports, before=before))


@operator.operation("delete", "/v1/studies/{study_id}", "Deleted", role=Role.OPERATE)
def delete_study(study_id: str) -> Response:
    """Close a study permanently and delete all its reports; another request goes on where not all were."""
    current_collector().current.require(study_id)
    return _delete(study_id, retention.delete_study)


def _delete(study_id: str, delete: Callable[..., int]) -> Response:
    """Delete reports, at most about MOST_AT_ONCE."""
    collector = current_collector()
    find = partial(collector.rules.find, reserved=True)
    deleted = delete(collector.writer.act, find, study_id, by=acting_key().name, most=MOST_AT_ONCE)
    collector.metrics.count_deletion("operator", deleted)
    collector.has_changed(study_id)
    return jsonify(id=study_id, deleted=deleted, complete=deleted < MOST_AT_ONCE)


@operator.operation("get", "/v1/keys", "Keys", role=Role.OPERATE)
def list_keys() -> Response:
    """Return every key by name; with the operator's token."""
    require_token(acting_key())
    with current_collector().database.read() as session:
        return jsonify(keys=[key.document() for key in keys.list_keys(session)])


@operator.operation("post", "/v1/keys", "NewKey", statuses=(201,), role=Role.OPERATE, takes=NEW_KEY)
def make_key(body: dict[str, Any]) -> Response:
    """Make a key, shown only once; with the operator's token."""
    by, collector = acting_key(), current_collector()
    require_token(by)
    role, studies = Role(body["role"]), body["studies"]
    expires = None if body["expires"] is None else date.fromisoformat(body["expires"])
    if expires is not None and expires < collector.today():
        raise ProblemError(STATEMENT_INVALID, "is over", "expires")

    def act(session: Session) -> tuple[str, list[str]]:
        key = keys.add_key(session, body["name"], role, studies, expires, by.name)
        return key, keys.unpublished(session, studies)

    key, warnings = collector.writer.act(act)
    response = jsonify(name=body["name"], key=key, warnings=warnings)
    response.status_code = 201
    return response


@operator.operation("delete", "/v1/keys/{name}", "RemovedKey", role=Role.OPERATE)
def remove_key(name: str) -> Response:
    """Make a key useless; with the operator's token."""
    by = acting_key()
    require_token(by)
    current_collector().writer.act(lambda session: keys.remove_key(session, name, by.name))
    return jsonify(name=name, removed=True)


@operator.operation("get", "/v1/audit-log", "AuditLog", role=Role.OPERATE, of_some=True, query=(LIMIT, SINCE))
def read_audit_log(limit: int | None, since: date | None) -> Response:
    """Return what operators did, the newest first; a key for some studies sees only theirs."""
    with current_collector().database.read() as session:
        entries = audit_log.entries(session, limit or LINES, since, acting_key().studies)
    return jsonify(entries=[entry._asdict() for entry in entries])


@operator.operation("get", "/v1/health", "Checks", role=Role.OPERATE)
def read_health() -> Response:
    """Return what needs an operator's action: backups, keys, disk, ended studies, exports."""
    return jsonify(checks=checks_of(current_collector()))


def require_token(key: Key) -> None:
    """Raise ProblemError for any key but the operator's token.

    The owner of another key could make more keys, and keep them when the first key is removed.
    """
    if key != TOKEN_KEY:
        raise ProblemError(FORBIDDEN, "keys are made and removed with the operator's token")
