"""Deleting reports except their ids, so that no copy of them is accepted."""

from __future__ import annotations

from datetime import date

from sqlalchemy import bindparam, case, func, select, update
from sqlalchemy.orm import Session

from collector.storage.models import EXPIRED, StudyRow
from collector.storage.packing import PackedReport
from collector.storage.queries import (
    REPORTS,
    Chosen,
    Deleted,
    insert_reports,
    select_rows,
)


def empty_reports(session: Session, chosen: Chosen, after: bytes, most: int) -> Deleted:
    """Delete all but the ids of the next `most` reports, by id. Return the deleted reports.

    Withdrawn reports are skipped. The day becomes EXPIRED: these reports were not withdrawn. after: the id to
    continue from.
    The caller holds the study's row.
    """
    kept = (REPORTS.c.payloads != b"", REPORTS.c.id > after)
    found = list(map(PackedReport._make, select_rows(session, *chosen.conditions(), *kept, limit=most)))
    one = update(REPORTS).where(REPORTS.c.study == chosen.study, REPORTS.c.id == bindparam("one"))
    if found:
        gone = one.values(payloads=b"", day=EXPIRED)
        session.connection().execute(gone, [{"one": report.id} for report in found])
    return Deleted(found, withdrawn=0)


def withdraw_report(session: Session, study: int, day: date, report_id: bytes) -> PackedReport | None:
    """Delete all of a report but its id. Return its former row, withdrawn or not, or None if there is none.

    day: the day of withdrawal, for a report that had expired.
    """
    here = (REPORTS.c.study == study, REPORTS.c.id == report_id)
    found = select(REPORTS.c.id, REPORTS.c.version, REPORTS.c.payloads).where(*here).with_for_update()
    row = session.connection().execute(found).first()
    if row is None:
        return None
    then = case((REPORTS.c.day == EXPIRED, day), else_=REPORTS.c.day)
    session.connection().execute(update(REPORTS).where(*here).values(payloads=b"", day=then))
    return PackedReport(*row)


def was_withdrawn(session: Session, study: int, report_id: bytes) -> bool | None:
    """Return True for the id of a withdrawn report, False for another stored id, None for an unknown id."""
    found = select(REPORTS.c.payloads, REPORTS.c.day).where(
        REPORTS.c.study == study, REPORTS.c.id == report_id
    )
    row = session.connection().execute(found).first()
    return None if row is None else row.payloads == b"" and row.day != EXPIRED


def insert_withdrawn(session: Session, study: int, day: date, report_id: bytes) -> bool:
    """Store the id of a report that has not arrived, so that it is never accepted. False if it has."""
    version = session.scalars(select(StudyRow.version).where(StudyRow.number == study)).one()
    return bool(insert_reports(session, study, day, [PackedReport(report_id, version, b"")]))


def count_withdrawn(session: Session, study: int) -> int:
    """Return how many reports of a study were withdrawn and still have their ids stored."""
    here = (REPORTS.c.study == study, REPORTS.c.payloads == b"", REPORTS.c.day != EXPIRED)
    return int(session.execute(select(func.count()).where(*here)).scalar_one())


def withdrawn_since_export(session: Session, study: int, withdrawn: int) -> int:
    """Return how many of `withdrawn` reports were withdrawn since the last complete export."""
    exported = session.execute(
        select(StudyRow.withdrawn_exported).where(StudyRow.number == study)
    ).scalar_one()
    return max(0, withdrawn - exported)


def note_export(session: Session, study: int, withdrawn: int) -> None:
    """Store how many reports were withdrawn when a complete export began."""
    session.execute(update(StudyRow).where(StudyRow.number == study).values(withdrawn_exported=withdrawn))
