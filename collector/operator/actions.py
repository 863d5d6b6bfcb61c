"""Operators' changes to a running collector, by program or page; each writes a line of the audit log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from collector import audit_log
from collector.clock import doubt_of
from collector.daily import UnfinishedError, Upkeep, kept_everywhere, note_deleted
from collector.db import Database
from collector.keys import TOKEN_KEY, Key, Role, add_key, remove_key, unpublished
from collector.operator import inviting
from collector.problems import FORBIDDEN, STATEMENT_INVALID, UNAVAILABLE, ProblemError, unknown_study
from collector.reports.sums import recount
from collector.retention import delete_overdue, delete_reports, delete_study
from collector.studies import publishing
from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    from collector.context import Collector

T = TypeVar("T")
# Reports that one request deletes: this takes some ten seconds.
MOST_AT_ONCE = 100_000


def close_study(collector: Collector, study_id: str, by: Key) -> int:
    """Close a study, at a node permanently; return its version. Raises ProblemError."""

    def act(session: Session) -> int:
        was_closed = publishing.is_closed(session, study_id)
        version = publishing.close(session, study_id, final=collector.node is not None)
        if not was_closed:
            audit_log.record(session, by.name, "close", study_id)
        return version

    version = collector.writer.act(act)
    collector.has_changed(study_id)
    return version


def open_study(collector: Collector, study_id: str, by: Key) -> int:
    """Reopen a closed study; return its version. Raises ProblemError."""

    def act(session: Session) -> int:
        was_closed = publishing.is_closed(session, study_id)
        version = publishing.reopen(session, study_id)
        if was_closed:
            audit_log.record(session, by.name, "open", study_id)
        return version

    version = collector.writer.act(act)
    collector.has_changed(study_id)
    return version


def make_tickets(
    collector: Collector, study_id: str, count: int, public: Mapping[str, str], by: Key
) -> tuple[list[str], list[str]]:
    """Make tickets; return them, which are shown only now, and warnings about what they carry.

    Raises ProblemError.
    """
    secret = collector.settings.ticket_secret
    if not secret:
        raise ProblemError(STATEMENT_INVALID, inviting.NO_KEY)

    def act(session: Session) -> tuple[list[str], list[str]]:
        late = timedelta(collector.settings.grace_days)
        inviting.refuse_ended(session, study_id, collector.today(), late)
        made = inviting.invite(session, study_id, count, secret, public, by.name)
        return made, inviting.warnings_of_tickets(session, study_id)

    return _change_tickets(collector, study_id, act)


def revoke_tickets(collector: Collector, study_id: str, by: Key) -> None:
    """Forget a study's tickets, so that only new ones admit reports. Raises ProblemError."""
    _change_tickets(collector, study_id, partial(inviting.revoke, study_id=study_id, by=by.name))


def disable_tickets(collector: Collector, study_id: str, by: Key) -> None:
    """Forget a study's tickets and admit reports without tickets. Raises ProblemError."""
    _change_tickets(collector, study_id, partial(inviting.disable, study_id=study_id, by=by.name))


def _change_tickets(collector: Collector, study_id: str, act: Callable[[Session], T]) -> T:
    if collector.current.find(study_id) is None:
        raise unknown_study(study_id)
    with _refusing_input(), _without_hurry(collector) as database:
        done = database.act(act)
    collector.has_changed(study_id)
    return done


def keep_up(collector: Collector, day: date | None, by: Key) -> None:
    """Run the daily upkeep now, for reports of all days. Raises ProblemError.

    day: today's date as the operator states it, if the clock is in doubt.
    """
    today = collector.today()

    def begin(session: Session) -> None:
        if day not in (None, today):
            detail = f"this collector's clock says {today} (UTC); set it right first"
            raise ProblemError(STATEMENT_INVALID, detail, "date")
        if day is None and (doubt := doubt_of(session, today)):
            advice = f"if today is {today}, confirm it with --date {today}"
            raise ProblemError(STATEMENT_INVALID, f"{doubt}: {advice}")
        stated = "" if day is None else f"as of {day}, which the operator stated"
        audit_log.record(session, by.name, "upkeep", detail=stated)

    with collector.counting.hold():
        collector.writer.act(begin)
        try:
            with _refusing_input(), _without_hurry(collector) as database:
                upkeep = Upkeep(database, collector.today, collector.settings.ticket_secret)
                upkeep.run(today, even_if_done=True)
        except UnfinishedError as error:
            raise ProblemError(UNAVAILABLE, f"{error}; run this again") from None
        finally:
            collector.arrivals.forget()


def count_again(collector: Collector, by: Key) -> list[tuple[str, int]]:
    """Recount every stored report; return the studies and versions whose running summary was wrong."""
    with collector.counting.hold():
        collector.writer.act(lambda session: audit_log.record(session, by.name, "recount"))
        with _without_hurry(collector) as database:
            return database.act(recount)


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


def delete_overdue_of(collector: Collector, study_id: str, by: Key) -> int:
    """Delete a study's overdue reports, at most about MOST_AT_ONCE; return how many. Raises ProblemError."""
    _require_nodes_operator(collector, by)
    if collector.current.find(study_id) is None:
        raise unknown_study(study_id)
    find, deleted = partial(collector.rules.find, reserved=True), 0
    for kept in kept_everywhere(collector):
        if kept.study != study_id or deleted >= MOST_AT_ONCE:
            continue
        with _refusing_input():
            most = MOST_AT_ONCE - deleted
            now = delete_overdue(collector.writer.act, find, kept, collector.today(), by.name, most)
        note_deleted(collector, kept, now)
        deleted += now
    return deleted


def expire_reports(collector: Collector, study_id: str, before: date, by: Key) -> int:
    """Delete a study's reports from before a day, at most about MOST_AT_ONCE; return how many.

    Raises ProblemError if `before` is in the future, or if today's date is in doubt.
    """
    _require_nodes_operator(collector, by)
    today = collector.today()
    if before > today:
        raise ProblemError(STATEMENT_INVALID, "is still to come: today's reports would go too", "before")
    if doubt := collector.writer.act(lambda session: doubt_of(session, today)):
        raise ProblemError(STATEMENT_INVALID, f"{doubt}: nothing was deleted")
    return _delete(collector, study_id, partial(delete_reports, before=before, by=by.name))


def delete_study_of(collector: Collector, study_id: str, by: Key) -> int:
    """Close a study permanently and delete its reports, at most about MOST_AT_ONCE; return how many.

    Raises ProblemError.
    """
    _require_nodes_operator(collector, by)
    return _delete(collector, study_id, partial(delete_study, by=by.name))


def _delete(collector: Collector, study_id: str, delete: Callable[..., int]) -> int:
    if collector.current.find(study_id) is None:
        raise unknown_study(study_id)
    find = partial(collector.rules.find, reserved=True)
    with _refusing_input():
        deleted = delete(collector.writer.act, find, study_id, most=MOST_AT_ONCE)
    collector.metrics.count_deletion("operator", deleted)
    collector.has_changed(study_id)
    collector.arrivals.forget()
    return deleted


def make_key(
    collector: Collector, name: str, role: Role, studies: Sequence[str] | None, expires: date | None, by: Key
) -> tuple[str, list[str]]:
    """Make a key; return it, which is shown only now, and warnings about its rights. Raises ProblemError."""
    require_token(by)
    if expires is not None and expires < collector.today():
        raise ProblemError(STATEMENT_INVALID, "is over", "expires")

    def act(session: Session) -> tuple[str, list[str]]:
        return add_key(session, name, role, studies, expires, by.name), unpublished(session, studies)

    with _refusing_input():
        return collector.writer.act(act)


def drop_key(collector: Collector, name: str, by: Key) -> None:
    """Make a key useless from now on. Raises ProblemError."""
    require_token(by)
    with _refusing_input():
        collector.writer.act(lambda session: remove_key(session, name, by.name))


def _require_nodes_operator(collector: Collector, by: Key) -> None:
    """Raise ProblemError at a node for any key but its operator's token.

    Closing a sum takes a key of every node. If these keys could also choose at all nodes who is in the sum,
    their owner could learn one person's answer.
    """
    if collector.node is not None and by != TOKEN_KEY:
        detail = "at a node of secure sums, deletions need the operator's token"
        raise ProblemError(FORBIDDEN, detail)


def require_token(key: Key) -> None:
    """Raise ProblemError for any key but the operator's token.

    The owner of another key could make more keys, and keep them when the first key is removed.
    """
    if key != TOKEN_KEY:
        raise ProblemError(FORBIDDEN, "keys are made and removed with the operator's token")


@contextmanager
def _refusing_input() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise ProblemError(STATEMENT_INVALID, str(error)) from None
