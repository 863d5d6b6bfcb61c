"""What operators do to a running collector, with a program or on the page: a line of the audit log each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from collector.operator import inviting
from collector.operator.days import kept_everywhere, note_deleted
from collector.operator.retention import delete_reports, delete_study
from collector.operator.stated_retention import delete_overdue
from collector.problems import FORBIDDEN, STATEMENT_INVALID, UNAVAILABLE, ProblemError, unknown_study
from collector.reports.running_summary import recount
from collector.storage import audit_log
from collector.storage.database import Database
from collector.storage.keys import TOKEN_KEY, Key, Role, add_key, remove_key, unpublished
from collector.storage.rewriting import UnfinishedError
from collector.storage.upkeep import Upkeep, doubt_of
from collector.studies import publishing
from ldp_client.documents.errors import InputError

if TYPE_CHECKING:
    from collector.context import Collector

T = TypeVar("T")
# Reports that one request deletes: some ten seconds.
MOST_AT_ONCE = 100_000


def close_study(collector: Collector, study_id: str, by: Key) -> int:
    """Have a study take no more reports, at a node never again; its version. Raises ProblemError."""

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
    """Have a closed study take reports again; its version. Raises ProblemError."""

    def act(session: Session) -> int:
        was_closed = publishing.is_closed(session, study_id)
        version = publishing.reopen(session, study_id)
        if was_closed:
            audit_log.record(session, by.name, "open", study_id)
        return version

    version = collector.writer.act(act)
    collector.has_changed(study_id)
    return version


def make_invitations(
    collector: Collector, study_id: str, count: int, public: Mapping[str, str], by: Key
) -> tuple[list[str], list[str]]:
    """New invitations, for the only time, and warnings about what they carry. Raises ProblemError."""
    secret = collector.settings.invitation_secret
    if not secret:
        raise ProblemError(STATEMENT_INVALID, inviting.NO_KEY)

    def act(session: Session) -> tuple[list[str], list[str]]:
        late = timedelta(collector.settings.late_days)
        inviting.refuse_ended(session, study_id, collector.today(), late)
        made = inviting.invite(session, study_id, count, secret, public, by.name)
        return made, inviting.warnings_of_invitations(session, study_id)

    return _change_invitations(collector, study_id, act)


def require_node(collector: Collector) -> None:
    """Raises ProblemError for a server that takes no lists of invitations."""
    if collector.node is None:
        raise ProblemError(STATEMENT_INVALID, "lists of invitations are for nodes of secure sums")


def take_invitations(collector: Collector, study_id: str, text: str, by: Key) -> str:
    """Let in who has the invitations of a list; how many, in words. Raises ProblemError.

    text: what the study's author wrote for this node.
    """
    _require_nodes_operator(collector, by)
    secret = collector.settings.invitation_secret
    if not secret:
        raise ProblemError(STATEMENT_INVALID, inviting.NO_KEY)
    keys = collector.node_part().keys.fragment

    def act(session: Session) -> str:
        late = timedelta(collector.settings.late_days)
        inviting.refuse_ended(session, study_id, collector.today(), late)
        return inviting.take_list(session, study_id, text, secret, keys, by.name)

    return _change_invitations(collector, study_id, act)


def forget_invitations(collector: Collector, study_id: str, by: Key) -> None:
    """Have only new invitations let a report in. Raises ProblemError."""
    _require_nodes_operator(collector, by)
    _change_invitations(collector, study_id, partial(inviting.forget, study_id=study_id, by=by.name))


def lift_invitations(collector: Collector, study_id: str, by: Key) -> None:
    """Forget a study's invitations and let everybody's reports in. Raises ProblemError."""
    _change_invitations(collector, study_id, partial(inviting.lift, study_id=study_id, by=by.name))


def _change_invitations(collector: Collector, study_id: str, act: Callable[[Session], T]) -> T:
    if collector.current.find(study_id) is None:
        raise unknown_study(study_id)
    with _refusing_input(), _without_hurry(collector) as database:
        done = database.act(act)
    collector.has_changed(study_id)
    return done


def keep_up(collector: Collector, day: date | None, by: Key) -> None:
    """Do the daily upkeep now, of all days' reports. Raises ProblemError.

    day: what an operator says that today is, where the clock is in doubt.
    """
    today = collector.today()

    def begin(session: Session) -> None:
        if day not in (None, today):
            detail = f"this collector's clock says {today} (UTC); set it right first"
            raise ProblemError(STATEMENT_INVALID, detail, "date")
        if day is None and (doubt := doubt_of(session, today)):
            advice = f"where today is {today}, say so with --date {today}"
            raise ProblemError(STATEMENT_INVALID, f"{doubt}: {advice}")
        stated = "" if day is None else f"as of {day}, which the operator stated"
        audit_log.record(session, by.name, "upkeep", detail=stated)

    with collector.counting.hold():
        collector.writer.act(begin)
        try:
            with _refusing_input(), _without_hurry(collector) as database:
                upkeep = Upkeep(database, collector.today, collector.settings.invitation_secret)
                upkeep.run(today, even_if_done=True)
        except UnfinishedError as error:
            raise ProblemError(UNAVAILABLE, f"{error}; run this again") from None
        finally:
            collector.arrivals.forget()


def count_again(collector: Collector, by: Key) -> list[tuple[str, int]]:
    """Count every stored report anew; the studies and versions whose running summary was wrong."""
    with collector.counting.hold():
        collector.writer.act(lambda session: audit_log.record(session, by.name, "recount"))
        with _without_hurry(collector) as database:
            return database.act(recount)


@contextmanager
def _without_hurry(collector: Collector) -> Iterator[Database]:
    """The database, at connections that end no statement for taking long, beside the one that writes."""
    database = Database(collector.settings.database, collector.settings.busy_timeout)
    try:
        yield database
    except (DBAPIError, UnfinishedError) as error:
        # What says that the file is damaged stops the server, too.
        collector.database.note(error.orig if isinstance(error, DBAPIError) else error.__cause__)
        raise
    finally:
        database.engine.dispose()


def count_overdue(collector: Collector, study_id: str) -> int:
    """How many reports of a study are kept for longer than it states, read anew: another process may have
    deleted what this one counted."""
    collector.arrivals.forget()
    return sum(kept.overdue for kept in kept_everywhere(collector) if kept.study == study_id)


def delete_overdue_of(collector: Collector, study_id: str, by: Key) -> int:
    """Delete what is overdue of a study, or about MOST_AT_ONCE of it; how many. Raises ProblemError."""
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
    """Delete a study's reports that came before a day, or about MOST_AT_ONCE of them; how many.

    Raises ProblemError for a day to come, and where this day is in doubt.
    """
    _require_nodes_operator(collector, by)
    today = collector.today()
    if before > today:
        raise ProblemError(STATEMENT_INVALID, "is still to come: today's reports would go too", "before")
    if doubt := collector.writer.act(lambda session: doubt_of(session, today)):
        raise ProblemError(STATEMENT_INVALID, f"{doubt}: nothing was deleted")
    return _delete(collector, study_id, partial(delete_reports, before=before, by=by.name))


def delete_study_of(collector: Collector, study_id: str, by: Key) -> int:
    """Close a study for good and delete its reports, or about MOST_AT_ONCE of them; how many.

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
    """A new key, for the only time, and warnings about what it is for. Raises ProblemError."""
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
    """Raises ProblemError at a node for any key but its operator's token.

    Who closes a sum has a key of every node: whoever could choose at all of them who is in it could learn one
    person's answer.
    """
    if collector.node is not None and by != TOKEN_KEY:
        detail = "at a node of secure sums, invitations and deletions need the operator's token"
        raise ProblemError(FORBIDDEN, detail)


def require_token(key: Key) -> None:
    """Raises ProblemError for any key but the operator's token: who has one could make others, and keep them
    when it is removed."""
    if key != TOKEN_KEY:
        raise ProblemError(FORBIDDEN, "keys are made and removed with the operator's token")


@contextmanager
def _refusing_input() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise ProblemError(STATEMENT_INVALID, str(error)) from None
