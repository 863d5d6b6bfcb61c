"""Every statement that reaches the database, each a plain function of a session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from itertools import islice
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, Table, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from collector.models import DocumentRow, ReportRow, StudyRow
from collector.packing import PackedReport

STUDIES = cast(Table, StudyRow.__table__)
REPORTS = cast(Table, ReportRow.__table__)
IDS_PER_STATEMENT = 500
NEVER_PUBLISHED = 0


class StudyState(NamedTuple):
    """What uploads need to know of a study. number: its key in the reports table."""

    number: int
    closed: bool
    opens: date | None
    closes: date | None


def ping(session: Session) -> None:
    """Read from a table of ours, so that a wrong or unreachable database is noticed."""
    session.execute(select(StudyRow.number).limit(1)).first()


def study_state(session: Session, study_id: str) -> StudyState | None:
    """A published study's state."""
    columns = (StudyRow.number, StudyRow.closed, StudyRow.opens, StudyRow.closes)
    row = session.execute(select(*columns).where(StudyRow.id == study_id)).first()
    return StudyState(*row) if row else None


def locked_study(session: Session, study_id: str) -> StudyRow | None:
    """A study's row, which nobody else can change until this transaction ends."""
    return session.scalar(select(StudyRow).where(StudyRow.id == study_id).with_for_update())


def locked_or_new_study(session: Session, study_id: str) -> StudyRow:
    """Like locked_study; a study that is not there is made, with version NEVER_PUBLISHED."""
    values = {"id": study_id, "version": NEVER_PUBLISHED, "closed": False}
    session.execute(_insert_new(session, STUDIES, ["id"]).values(**values))
    return session.scalars(select(StudyRow).where(StudyRow.id == study_id).with_for_update()).one()


def add_document(session: Session, number: int, version: int, digest: str, canonical: bytes) -> None:
    """Store one version of a study."""
    session.add(DocumentRow(study=number, version=version, digest=digest, canonical=canonical))
    session.flush()


def current_document(session: Session, study_id: str) -> DocumentRow | None:
    """The version of a study that devices get now."""
    matches = (DocumentRow.study == StudyRow.number, DocumentRow.version == StudyRow.version)
    statement = select(DocumentRow).join(StudyRow, matches[0] & matches[1]).where(StudyRow.id == study_id)
    return session.scalar(statement)


def canonical_bytes(session: Session, study_id: str, version: int) -> bytes | None:
    """One version of a study, current or not."""
    statement = select(DocumentRow.canonical).join(StudyRow, DocumentRow.study == StudyRow.number)
    return session.scalar(statement.where(StudyRow.id == study_id, DocumentRow.version == version))


def insert_reports(session: Session, study: int, day: date, reports: Iterable[PackedReport]) -> set[bytes]:
    """Store the reports whose ids are new, and return those ids.

    Sorted by id, so that two batches with the same reports cannot wait for each other in a circle.
    """
    rows = [
        {"study": study, "id": report.id, "version": report.version, "day": day, "payloads": report.payloads}
        for report in sorted(reports)
    ]
    if not rows:
        return set()
    statement = _insert_new(session, REPORTS, ["study", "id"]).returning(REPORTS.c.id)
    return set(session.connection().execute(statement, rows).scalars())


def held_reports(session: Session, study: int, ids: Iterable[bytes]) -> dict[bytes, PackedReport]:
    """The stored reports among these ids."""
    held: dict[bytes, PackedReport] = {}
    remaining = iter(ids)
    while chunk := list(islice(remaining, IDS_PER_STATEMENT)):
        for report in _select_reports(session, ReportRow.study == study, ReportRow.id.in_(chunk)):
            held[report.id] = report
    return held


def report_page(
    session: Session, study: int, after: bytes, through: date | None, limit: int
) -> list[PackedReport]:
    """The next reports of a study in the order of their ids; through: the last day of arrival."""
    conditions = [ReportRow.study == study, ReportRow.id > after]
    if through is not None:
        conditions.append(ReportRow.day <= through)
    return _select_reports(session, *conditions, limit=limit)


def _select_reports(
    session: Session, *conditions: ColumnElement[bool], limit: int | None = None
) -> list[PackedReport]:
    statement = select(ReportRow.id, ReportRow.version, ReportRow.payloads).where(*conditions)
    rows = session.execute(statement.order_by(ReportRow.id).limit(limit))
    return [PackedReport(*row) for row in rows]


def _insert_new(session: Session, table: Table, key: Sequence[str]) -> Any:
    """An insert that leaves rows with a known key alone. The type is the dialect's own."""
    dialects: dict[str, Any] = {"sqlite": sqlite, "postgresql": postgresql}
    insert = dialects[session.get_bind().dialect.name].insert(table)
    return insert.on_conflict_do_nothing(index_elements=key)
