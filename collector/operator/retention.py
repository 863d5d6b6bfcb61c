"""Delete reports permanently: those from before a day, of one version, or all of a study."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import Any

from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from collector.reports.paging import page_limit
from collector.reports.sums import FindRules, require_sums, take_back_reports
from collector.storage import audit_log, partitions, queries
from collector.storage.emptying import empty_reports
from collector.storage.invitations import disable_invitations
from collector.storage.overviews import count_whole
from collector.storage.packing import PackedReport
from collector.storage.rewriting import LOCK_NOT_AVAILABLE
from collector.storage.spent_tokens import forget_tokens
from collector.storage.sums import forget_sums
from collector.studies import publishing
from ldp_client.documents.errors import InputError

# Small enough that uploads hardly wait.
REPORTS_AT_ONCE = 2000
# Runs a function of a session in a separate transaction, which is durable on return.
Act = Callable[[Callable[[Session], Any]], Any]


@dataclass(frozen=True)
class Doomed:
    """Reports of a study that are to be deleted.

    Attributes:
        study: the study's id.
        number: the study's key in the database.
        before: only reports that arrived before this day; None for all.
        version: only reports of this version; None for all.
        at_once: how many reports one transaction deletes.
        is_past: whether the retention of all these reports is over, so that no copy of them is accepted.
    """

    study: str
    number: int
    before: date | None = None
    version: int | None = None
    at_once: int = REPORTS_AT_ONCE
    is_past: bool = False


def delete_doomed(act: Act, find: FindRules, doomed: Doomed, most: int | None = None) -> int:
    """Delete the reports, or at most about `most`; return how many, without withdrawn reports.

    Their ids stay as long as a copy might be accepted, which a relay or a backup may have: until the study is
    closed permanently, or the last day of all these reports is over.

    Raises WrongSumsError if nothing can be deleted before all reports are counted again.
    """
    is_all = doomed.before is None and doomed.version is None
    if (most is None or is_all) and (whole := _delete_whole(act, doomed)) is not None:
        return whole
    total, after = 0, b""
    while most is None or total < most:
        deleted = act(partial(_delete_page, find=find, doomed=doomed, after=after))
        if not deleted:
            break
        total += sum(not report.withdrawn for report in deleted)
        after = max(report.id for report in deleted)
    return total


def _delete_whole(act: Act, doomed: Doomed) -> int | None:
    """Delete all reports of a study at once; return how many, or None if they must be deleted page by page.

    That is so if only some reports are to be deleted, if the tables are not partitioned by study, or while
    another program such as pg_dump reads them.
    """
    try:
        deleted: int | None = act(partial(_empty_if_whole, doomed=doomed))
    except OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != LOCK_NOT_AVAILABLE:
            raise
        return None
    return deleted


def _empty_if_whole(session: Session, doomed: Doomed) -> int | None:
    study = queries.study_state(session, doomed.study)
    if study is None or not partitions.are_in(session) or not study.final:
        return None
    # Counted before the lock: no report arrives any more, and uploads must not wait for the counting.
    found = count_whole(session, queries.Chosen(doomed.number, doomed.before, doomed.version))
    row = queries.locked_study(session, doomed.study)
    if found.others or row is None:
        return None
    partitions.empty_partition(session, doomed.number)
    forget_sums(session, [doomed.number])
    row.withdrawn_exported -= found.withdrawn
    row.deletions += found.reports > 0
    return found.reports


def _delete_page(session: Session, find: FindRules, doomed: Doomed, after: bytes) -> list[PackedReport]:
    """Delete the next reports by id, and return them."""
    # The lock keeps uploads out: an upload that found a report here must not lose it before it commits.
    row = queries.locked_study(session, doomed.study)
    assert row is not None
    chosen = queries.Chosen(doomed.number, doomed.before, doomed.version)
    delete = queries.delete_reports if row.final or doomed.is_past else empty_reports
    deleted, withdrawn = delete(session, chosen, after, doomed.at_once)
    if deleted:
        take_back_reports(session, find, doomed.study, doomed.number, deleted)
    if not all(report.withdrawn for report in deleted):
        # A running export would lack these reports and yet look complete.
        row.deletions += 1
    # Deleted ids are no longer counted, so subtract them to keep the next export's difference right.
    row.withdrawn_exported -= withdrawn
    return deleted


def delete_reports(
    act: Act, find: FindRules, study_id: str, before: date | None, by: str, most: int | None = None
) -> int:
    """Delete the reports from before a day (UTC), or all, as `delete_doomed` does; return how many.

    by: the name of a key. Raises InputError for an unknown study.
    """
    number, versions = act(partial(_begin, study_id=study_id, before=before, by=by))
    at_once = min(REPORTS_AT_ONCE, page_limit([find(study_id, version) for version in versions]))
    return delete_doomed(act, find, Doomed(study_id, number, before, at_once=at_once), most)


def _begin(session: Session, study_id: str, before: date | None, by: str) -> tuple[int, list[int]]:
    """Write the line of the audit log; return the study's number and versions."""
    number = _number(session, study_id)
    # Checked before anything is deleted.
    require_sums(session, study_id, number)
    line = f"reports from before {before}"
    # One command may send several requests until all reports are deleted.
    if before is not None and not audit_log.is_said_today(session, by, "expire", study_id, line):
        audit_log.record(session, by, "expire", study_id, line)
    return number, queries.published_versions(session, study_id)


def delete_study(act: Act, find: FindRules, study_id: str, by: str, most: int | None = None) -> int:
    """Close a study permanently and delete its reports and invitations; return how many reports.

    The document stays, so that its id cannot get another meaning. Devices get it only by its version, and use
    it to check that the study's collector deletes their report. Raises as `delete_reports` does; then nothing
    was done.
    """

    def end(session: Session) -> None:
        number = _number(session, study_id)
        row = queries.locked_study(session, study_id)
        assert row is not None
        # Checked before the study is closed.
        require_sums(session, study_id, number)
        if not row.deleted:
            audit_log.record(session, by, "delete study", study_id)
        publishing.close(session, study_id, deleted=True)
        disable_invitations(session, number)
        forget_tokens(session, number)

    act(end)
    return delete_reports(act, find, study_id, None, by, most)


def _number(session: Session, study_id: str) -> int:
    study = queries.study_state(session, study_id)
    if study is None:
        raise InputError(f"there is no study {study_id[:64]!r}", code="study.unknown")
    return study.number
