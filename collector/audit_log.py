"""The audit log of operators' actions: with which key, on which day, to which study. Entries never change.

It names no person, and has no order within a day: the database keeps no time of day at all.
"""

import logging
import secrets
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from collector.db import Database
from collector.limiter import log_throttled
from collector.models import AuditRow
from collector.problems import ProblemError

# Names of actors without a named key; no key's name has parentheses.
BY_TOKEN, BY_SERVER = "(token)", "(server)"
# Actions that `ldpkit status --health` looks for.
BACKUP, EXPORT = "backup", "export"
ID_BYTES = 16
# Runs a function of a session in a separate transaction, which is durable on return.
Act = Callable[[Callable[[Session], Any]], Any]


class Entry(NamedTuple):
    """One line. at: the day, in UTC. key: its name. detail: how much, which version."""

    at: str
    key: str
    action: str
    study: str | None
    detail: str


def record(session: Session, key: str, action: str, study: str | None = None, detail: str = "") -> None:
    """Write a line, in the transaction of the action."""
    at = _now()
    id_ = secrets.token_bytes(ID_BYTES)
    session.add(AuditRow(id=id_, at=at, key=key, action=action, study=study, detail=detail))


def record_once(session: Session, key: str, action: str, study: str, what: str, count: str = "") -> None:
    """Write a line unless one of today begins with the same: work in several parts writes its first count."""
    if not _is_recorded(session, key, action, study, what):
        record(session, key, action, study, what + count)


def record_daily(database: Database, act: Act, key: str, action: str, study: str, detail: str = "") -> None:
    """Write a line about a frequent action once a day. If that fails, the action is not undone."""
    try:
        # Most requests find today's line, and do not wait for the writer.
        with database.read() as session:
            if _is_recorded(session, key, action, study, detail):
                return
        act(lambda session: record_once(session, key, action, study, detail))
    except (SQLAlchemyError, ProblemError):
        log_throttled(logging.ERROR, "a line of the audit log cannot be written")


def _is_recorded(session: Session, key: str, action: str, study: str, what: str) -> bool:
    """Return True if a line of today begins so."""
    same = (AuditRow.at == _now(), AuditRow.key == key, AuditRow.action == action, AuditRow.study == study)
    statement = select(AuditRow.id).where(*same, AuditRow.detail.startswith(what, autoescape=True)).limit(1)
    return session.execute(statement).first() is not None


def _now() -> str:
    return datetime.now(UTC).date().isoformat()


def entries(
    session: Session, most: int, since: date | None = None, studies: Iterable[str] | None = None
) -> list[Entry]:
    """Return the last lines, the newest first. studies: only lines about these, None for all lines."""
    columns = (AuditRow.at, AuditRow.key, AuditRow.action, AuditRow.study, AuditRow.detail)
    statement = select(*columns).order_by(AuditRow.at.desc(), AuditRow.id).limit(most)
    if since is not None:
        statement = statement.where(AuditRow.at >= since.isoformat())
    if studies is not None:
        statement = statement.where(AuditRow.study.in_(sorted(studies)))
    return [Entry(*row) for row in session.execute(statement)]


def last_backup(session: Session) -> date | None:
    """Return the day of the last line of `ldpkit backup`."""
    day = session.scalar(select(func.max(AuditRow.at)).where(AuditRow.action == BACKUP))
    return None if day is None else date.fromisoformat(day)


def last_exports(session: Session) -> dict[str | None, tuple[str, int]]:
    """Return the day of each study's last export, and how many reports had been withdrawn by then."""
    lines = select(AuditRow.study, AuditRow.at, AuditRow.detail).where(AuditRow.action == EXPORT)
    exports: dict[str | None, tuple[str, int]] = {}
    for study, day, detail in session.execute(lines.where(AuditRow.detail != "")):
        # Of several on one day, the one after the most withdrawals is the last.
        withdrawn = int(detail.partition(" ")[0])
        exports[study] = max(exports.get(study, ("", 0)), (day, withdrawn))
    return exports
