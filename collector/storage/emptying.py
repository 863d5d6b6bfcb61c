"""Deleting reports but for their ids, so that no copy of them is taken."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from sqlalchemy import bindparam, case, func, select, update
from sqlalchemy.orm import Session

from collector.storage.models import EXPIRED, StudyRow
from collector.storage.packing import PackedReport
from collector.storage.queries import (
    IDS_PER_STATEMENT,
    REPORTS,
    Chosen,
    held_reports,
    insert_reports,
    select_rows,
)


def empty_reports(session: Session, chosen: Chosen, after: bytes, most: int) -> list[PackedReport]:
    """Leave nothing but their ids of the next `most` reports, by id; what they were, without withdrawn ones.

    Their day becomes EXPIRED: nobody withdrew them, so a dataset may keep them. after: the id to go on from.
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


class Fates(NamedTuple):
    """What became of reports that are stored no more. lost: nobody withdrew them; ids of some may be left."""

    withdrawn: int = 0
    lost: int = 0


def fates_of(session: Session, study: int, ids: Sequence[bytes]) -> Fates:
    """What became of the reports with these ids, of which some may be stored."""
    held = held_reports(session, study, ids)
    emptied = [one for one, row in held.items() if PackedReport._make(row).withdrawn]
    expired = _count_expired(session, study, emptied)
    return Fates(len(emptied) - expired, len(ids) - len(held) + expired)


def _count_expired(session: Session, study: int, ids: Sequence[bytes]) -> int:
    """How many of these reports expired, and are held by their ids alone."""
    found = 0
    for at in range(0, len(ids), IDS_PER_STATEMENT):
        here = (REPORTS.c.study == study, REPORTS.c.day == EXPIRED)
        counted = select(func.count()).where(*here, REPORTS.c.id.in_(ids[at : at + IDS_PER_STATEMENT]))
        found += session.execute(counted).scalar_one()
    return found
