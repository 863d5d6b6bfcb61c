"""Every study with its number of reports: these statements count all reports, so they run rarely."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from sqlalchemy import and_, case, func, not_, select, text
from sqlalchemy.orm import Session

from collector.storage.models import EXPIRED, StudyRow
from collector.storage.queries import REPORTS, STUDIES, Chosen


class StudyOverview(NamedTuple):
    """A study in an operator's list. number: its key in other tables.

    reports: of all versions. reports_now: of this version.
    """

    number: int
    id: str
    version: int
    closed: bool
    deleted: bool
    invited: bool
    opens: date | None
    closes: date | None
    reports: int
    reports_now: int


def study_overviews(session: Session) -> list[StudyOverview]:
    """Return every study with its number of reports, without withdrawn reports, by id."""
    is_now = case((REPORTS.c.version == STUDIES.c.version, 1), else_=0)
    counted = select(REPORTS.c.study, func.count().label("reports"), func.sum(is_now).label("now"))
    counted = counted.join(STUDIES, STUDIES.c.number == REPORTS.c.study).where(REPORTS.c.payloads != b"")
    counts = counted.group_by(REPORTS.c.study).subquery()
    columns = (
        StudyRow.number,
        StudyRow.id,
        StudyRow.version,
        StudyRow.closed,
        StudyRow.deleted,
        StudyRow.invited,
        StudyRow.opens,
        StudyRow.closes,
    )
    statement = select(*columns, func.coalesce(counts.c.reports, 0), func.coalesce(counts.c.now, 0))
    rows = session.execute(
        statement.outerjoin(counts, counts.c.study == StudyRow.number).order_by(StudyRow.id)
    )
    return [StudyOverview(*row) for row in rows]


def database_bytes(session: Session) -> int:
    """Return the size of the database on its disk; for SQLite without its log."""
    if session.get_bind().dialect.name == "postgresql":
        return int(session.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
    pages, size = (
        session.execute(text(f"PRAGMA {name}")).scalar_one() for name in ("page_count", "page_size")
    )
    return int(pages) * int(size)


class Arrivals(NamedTuple):
    """The number of reports of a study's version that arrived on a day. study: its number."""

    study: int
    version: int
    day: date
    reports: int


def arrivals(session: Session) -> list[Arrivals]:
    """Return the counts of all studies, without withdrawn reports, by version and day."""
    keys = (REPORTS.c.study, REPORTS.c.version, REPORTS.c.day)
    counted = select(*keys, func.count()).where(REPORTS.c.payloads != b"").group_by(*keys)
    return [Arrivals(*row) for row in sorted(tuple(row) for row in session.execute(counted))]


class Whole(NamedTuple):
    """A study's reports: the chosen ones, the withdrawn ones among the chosen, and those not chosen."""

    reports: int
    withdrawn: int
    others: int


def count_whole(session: Session, chosen: Chosen) -> Whole:
    """Count all of a study in one pass."""
    among = and_(*chosen.conditions())
    withdrawn = and_(among, REPORTS.c.payloads == b"", REPORTS.c.day != EXPIRED)
    kinds = (and_(among, REPORTS.c.payloads != b""), withdrawn, not_(among))
    counts = [func.count().filter(kind) for kind in kinds]
    statement = select(*counts).select_from(REPORTS).where(REPORTS.c.study == chosen.study)
    return Whole(*map(int, session.connection().execute(statement).one()))
