"""Permanent deletion of one report, by the device that made it or by an operator."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy import case, select, update
from sqlalchemy.orm import Session

from collector import store
from collector.clock import settled_day
from collector.models import EXPIRED
from collector.problems import REPORT_UNKNOWN, TOO_MANY_DELETIONS, ProblemError
from collector.reports.sums import take_back_reports
from collector.store import REPORTS, PackedReport

if TYPE_CHECKING:
    from collector.context import Collector

Refuse = Callable[[Session, store.StudyState], None]


def withdraw(collector: Collector, study_id: str, report_id: bytes, by_device: bool, refuse: Refuse) -> None:
    """Delete a report except its id, durable on return. Deleting it again changes nothing.

    by_device: its device asked, which may do so before the report arrives. refuse: raises if the study does
    not allow this deletion. Raises ProblemError for an unknown study, for an unknown report that no device
    asks for, and for devices above the limits: strangers never limit an operator.
    """
    if by_device:
        with collector.database.read() as session:
            study = store.require_study(session, study_id)
            is_withdrawn = _was_withdrawn(session, study.number, report_id)
        if is_withdrawn:
            # It needs no write.
            return
        # Deletions of unknown ids have a separate allowance, so that invented ids use up no other.
        allowance = collector.unknown_deletions if is_withdrawn is None else collector.deletions
        allowance.require(1, TOO_MANY_DELETIONS, "more deletions arrived than are made a second")
        allowance.take()
    find = partial(collector.rules.find, reserved=True)

    def act(session: Session) -> None:
        study = store.require_study(session, study_id, keep=True)
        refuse(session, study)
        day = settled_day(session, collector.today())
        report = _erase(session, study.number, day, report_id)
        if report is None and not by_device:
            raise ProblemError(REPORT_UNKNOWN, "no report with this id is stored")
        if report is None and not study.final:
            # The id is stored, so that the report is never accepted, unless it arrived meanwhile.
            gone = PackedReport(report_id, study.version, b"")
            if not store.insert_reports(session, study.number, day, [gone]):
                report = _erase(session, study.number, day, report_id)
        if report is not None:
            take_back_reports(session, find, study_id, study.number, [report])

    collector.writer.change((study_id, report_id), act)
    collector.metrics.count_deletion("device" if by_device else "operator")


def _erase(session: Session, study: int, day: date, report_id: bytes) -> PackedReport | None:
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


def _was_withdrawn(session: Session, study: int, report_id: bytes) -> bool | None:
    """Return True for the id of a withdrawn report, False for another stored id, None for an unknown id."""
    found = select(REPORTS.c.payloads, REPORTS.c.day).where(
        REPORTS.c.study == study, REPORTS.c.id == report_id
    )
    row = session.connection().execute(found).first()
    return None if row is None else row.payloads == b"" and row.day != EXPIRED
