"""Deleting reports for good: those that came before a day, or all of a study."""

from __future__ import annotations

from datetime import date, timedelta

from collector.operator.fitting import forget_fitted
from collector.reports.paging import page_limit
from collector.reports.rules import RuleBook
from collector.reports.running_summary import require_sums, take_back_reports
from collector.storage import audit_log, queries
from collector.storage.database import Database
from collector.storage.invitations import lift_invitations
from collector.studies import publishing
from ldp_client.documents.errors import InputError

# Few enough that uploads hardly wait.
REPORTS_AT_ONCE = 2000


def delete_reports(database: Database, study_id: str, before: date | None = None) -> int:
    """Delete the reports that came before a day (UTC), or all; returns how many. Raises InputError,
    and WrongSumsError where nothing can be deleted until all reports were counted again.

    Their ids go too, so a device that sent one may send it again while the study takes reports; those of
    withdrawn ones, which do not count, stay until it is closed. What was fitted to them goes as well.
    """
    number = _number(database, study_id)
    book = RuleBook(database)
    with database.read() as session:
        # Before anything is deleted.
        require_sums(session, study_id, number)
        versions = queries.published_versions(session, study_id)
    if before is not None:
        with database.write() as session:
            line = f"reports from before {before}"
            audit_log.record(session, audit_log.AT_DATABASE, "expire", study_id, line)
    most = min(REPORTS_AT_ONCE, page_limit([book.find(study_id, version) for version in versions]))
    total, after, any_deleted = 0, b"", before is None
    while True:
        with database.write() as session:
            # Keeps uploads out: one that found a report here must not miss it before it ends.
            row = queries.locked_study(session, study_id)
            is_closed = row is not None and row.closed
            deleted = queries.delete_reports(session, number, before, after, most, withdrawn=is_closed)
            take_back_reports(session, book.find, study_id, number, deleted)
            if row is not None and is_closed and any(report.withdrawn for report in deleted):
                # Late copies of them would be taken, were it opened again.
                row.final = True
            if not deleted:
                # What was fitted to reports that were withdrawn since, too.
                if any_deleted:
                    forget_fitted(session, number)
                return total
        any_deleted = True
        total += sum(not report.withdrawn for report in deleted)
        after = max(report.id for report in deleted)


def count_reports(database: Database, study_id: str, before: date) -> int:
    """How many reports `delete_reports` would delete. Raises InputError for an unknown study."""
    number = _number(database, study_id)
    with database.read() as session:
        return queries.count_reports(session, number, before)


def count_to_come(database: Database, study_id: str, today: date) -> int:
    """How many reports came on days after tomorrow, by a clock that was wrong, so that they never expire."""
    number = _number(database, study_id)
    with database.read() as session:
        return queries.count_after(session, number, today + timedelta(1))


def delete_study(database: Database, study_id: str) -> int:
    """Close a study for good and delete all its reports and invitations; how many reports. Raises as
    `delete_reports` does, and then nothing was done.

    Its document stays, so that its id cannot come to mean something else; devices get it by its version only,
    with which they make sure who deletes their report.
    """
    number = _number(database, study_id)
    with database.write() as session:
        # Before the study is closed.
        require_sums(session, study_id, number)
        publishing.close(session, study_id, deleted=True)
        lift_invitations(session, number)
        audit_log.record(session, audit_log.AT_DATABASE, "delete study", study_id)
    return delete_reports(database, study_id)


def _number(database: Database, study_id: str) -> int:
    with database.read() as session:
        study = queries.study_state(session, study_id)
    if study is None:
        raise InputError(f"there is no study {study_id[:64]!r}")
    return study.number
