"""Deleting reports but for their ids, so that no copy of them is taken."""

from __future__ import annotations

from datetime import date

from sqlalchemy import bindparam, case, func, select, update
from sqlalchemy.orm import Session

from collector.storage.models import EXPIRED, StudyRow
from collector.storage.packing import PackedReport
from collector.storage.queries import (
    REPORTS,
    Chosen,
    insert_reports,
    select_rows,
)


def empty_reports(session: Session, chosen: Chosen, after: bytes, most: int) -> list[PackedReport]:
    """Leave nothing but their ids of the next `most` reports, by id; what they were, without withdrawn ones.

    Their day becomes EXPIRED: nobody withdrew them. after: the id to go on from.
    The caller holds the study's row.
    """
    kept = (REPORTS.c.payloads != b"", REPORTS.c.id > after)
    found = list(map(PackedReport._make, select_rows(session, *chosen.conditions(), *kept, limit=most)))
    one = update(REPORTS).where(REPORTS.c.study == chosen.study, REPORTS.c.id == bindparam("one"))
    if found:
        gone = one.values(payloads=b"", day=EXPIRED)
        session.connection().execute(gone, [{"one": report.id} for report in found])
    return found


def withdraw_report(session: Session, study: int, day: date, report_id: bytes) -> PackedReport | None:
    """Leave nothing of a report but its id; what it was, if there is such a report, withdrawn or not.

    day: on which one is withdrawn that had expired.
    """
    here = (REPORTS.c.study == study, REPORTS.c.id == report_id)
    found = select(REPORTS.c.id, REPORTS.c.version, REPORTS.c.payloads).where(*here).with_for_update()
    row = session.connection().execute(found).first()
    if row is None:
        return None
    then = case((REPORTS.c.day == EXPIRED, day), else_=REPORTS.c.day)
    session.connection().execute(update(REPORTS).where(*here).values(payloads=b"", day=then))
    return PackedReport(*row)


def insert_withdrawn(session: Session, study: int, day: date, report_id: bytes) -> bool:
    """Keep the id of a report that has not come, so that it is not taken when it comes; False if it has."""
    version = session.scalars(select(StudyRow.version).where(StudyRow.number == study)).one()
    return bool(insert_reports(session, study, day, [PackedReport(report_id, version, b"")]))


def count_withdrawn(session: Session, study: int) -> int:
    """How many reports of a study were withdrawn, of those whose ids are still kept."""
    here = (REPORTS.c.study == study, REPORTS.c.payloads == b"", REPORTS.c.day != EXPIRED)
    return int(session.execute(select(func.count()).where(*here)).scalar_one())


def withdrawn_since_export(session: Session, study: int, withdrawn: int) -> int:
    """How many of `withdrawn` reports were withdrawn since an export last came to its end."""
    exported = session.execute(
        select(StudyRow.withdrawn_exported).where(StudyRow.number == study)
    ).scalar_one()
    return max(0, withdrawn - exported)


def note_export(session: Session, study: int, withdrawn: int) -> None:
    """Keep how many reports were withdrawn when an export began that came to its end."""
    session.execute(update(StudyRow).where(StudyRow.number == study).values(withdrawn_exported=withdrawn))
