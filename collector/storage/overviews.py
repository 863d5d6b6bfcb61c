"""Every study with how many reports it has: statements that count all of them, so seldom made."""

from __future__ import annotations

from datetime import date
from typing import NamedTuple

from sqlalchemy import and_, case, func, not_, select, text
from sqlalchemy.orm import Session

from collector.storage.models import StudyRow
from collector.storage.queries import REPORTS, STUDIES, Chosen


class StudyOverview(NamedTuple):
    """A study as an operator sees it in a list. number: its key in other tables.

    reports: of all versions. reports_now: of this one.
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
    """Every study with how many reports it has, withdrawn ones not counted, by id."""
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
    """How much the database takes on its disk; of SQLite without its log."""
    if session.get_bind().dialect.name == "postgresql":
        return int(session.execute(text("SELECT pg_database_size(current_database())")).scalar_one())
    pages, size = (
        session.execute(text(f"PRAGMA {name}")).scalar_one() for name in ("page_count", "page_size")
    )
    return int(pages) * int(size)


class Arrivals(NamedTuple):
    """How many reports of a version of a study came on a day. study: its number."""

    study: int
    version: int
    day: date
    reports: int


def arrivals(session: Session) -> list[Arrivals]:
    """The counts of all studies, withdrawn reports not counted, by version and day."""
    keys = (REPORTS.c.study, REPORTS.c.version, REPORTS.c.day)
    counted = select(*keys, func.count()).where(REPORTS.c.payloads != b"").group_by(*keys)
    return [Arrivals(*row) for row in sorted(tuple(row) for row in session.execute(counted))]


class Whole(NamedTuple):
    """What a study has: reports among the chosen, withdrawn ones among them, and others of either kind."""

    reports: int
    withdrawn: int
    others: int


def count_whole(session: Session, chosen: Chosen) -> Whole:
    """Count all of a study in one pass."""
    among = and_(*chosen.conditions())
    kinds = (and_(among, REPORTS.c.payloads != b""), and_(among, REPORTS.c.payloads == b""), not_(among))
    counts = [func.count().filter(kind) for kind in kinds]
    statement = select(*counts).select_from(REPORTS).where(REPORTS.c.study == chosen.study)
    reports, withdrawn, others = map(int, session.connection().execute(statement).one())
    return Whole(reports, withdrawn, others)
